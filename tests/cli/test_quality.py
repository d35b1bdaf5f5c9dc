"""`wherry quality`: against transformers on a tiny model, the stored card, and what it refuses."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import tokenizers
import torch
from click.testing import CliRunner
from tokenizers import models, pre_tokenizers

from wherry.artifact.card import CARD, Card
from wherry.cli import quality
from wherry.cli.group import cli
from wherry.compiler.api import ensure_artifact
from wherry.compiler.quality.measure import measure
from wherry.compiler.quality.texts import OWN, Text, evaluation_of, windows
from wherry.errors import UsageError
from wherry.quant.scheme import find

from ..support.artifacts import write
from ..support.tiny_models import round_weights, save
from .test_commands import write_tokenizer

TEXT = "A barge came up the river, and the harbour master wrote it down. " * 6


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["quality", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def log_softmax_of(model: torch.nn.Module, texts: list[list[int]]) -> np.ndarray:
    with torch.no_grad():
        logits = [model(torch.tensor([ids])).logits[0].double() for ids in texts]
    return torch.log_softmax(torch.cat(logits), -1).numpy()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    save(folder, "llama")
    write_tokenizer(folder)
    (folder / "text.txt").write_text(TEXT)
    return folder


@pytest.mark.cpu
class TestCard:
    def test_it_is_what_transformers_computes(self, folder):
        text = str(folder / "text.txt")
        given = [str(folder), "--target", "cpu", "--text", text, "--kv-dtype", "float32"]
        measured = json.loads(run(*given, "--activations", "float", "--json"))
        model = save(folder / "again", "llama")
        texts = windows(Text((TEXT,)), folder, 256)  # the model's context
        assert len(texts) > 1 and measured["tokens"] == sum(map(len, texts))
        p = log_softmax_of(model, texts)
        round_weights(model, find("q4f16_1"))
        q = log_softmax_of(model, texts)
        divergences = (np.exp(p) * (p - q)).sum(-1)
        assert measured["kl_mean"] == pytest.approx(divergences.mean(), rel=0.02)
        assert measured["kl_p99"] == pytest.approx(np.percentile(divergences, 99), rel=0.05)
        assert abs(measured["top1_agreement"] - (p.argmax(-1) == q.argmax(-1)).mean()) < 0.02
        assert (measured["quantization"], measured["reference_quantization"]) == (
            "q4f16_1",
            "q0f16",
        )

    def test_show_has_it(self, folder):
        artifact = ensure_artifact(str(folder), target="cpu")
        text = run(str(folder), "--target", "cpu", "--text", str(folder / "text.txt"))
        assert "KL mean" in text and "top-1 agreement" in text and "perplexity" in text
        assert (artifact / CARD).is_file()
        done = CliRunner().invoke(cli, ["show", str(artifact)], catch_exceptions=False)
        assert "  quality       KL " in done.stdout
        assert all(len(line) <= 100 for line in done.stdout.splitlines())
        shown = CliRunner().invoke(cli, ["show", str(artifact), "--json"], catch_exceptions=False)
        assert json.loads(shown.stdout)["quality"] == json.loads((artifact / CARD).read_text())

    def test_a_compiled_folder_is_compared_with_a_given_model(self, folder):
        artifact = ensure_artifact(str(folder), target="cpu")
        with pytest.raises(UsageError, match="--against MODEL"):
            run(str(artifact))
        with pytest.raises(UsageError, match="its weights are encoded; --calibration builtin"):
            run(str(artifact), "--calibration", "builtin", "--against", str(folder))
        text = str(folder / "text.txt")
        measured = json.loads(
            run(str(artifact), "--against", str(artifact), "--text", text, "--json")
        )
        assert (measured["kl_mean"], measured["top1_agreement"]) == (0.0, 1.0)


def test_models_with_other_tokenizers_are_refused(tmp_path):
    for name, vocabulary in (("own", {"a": 0, "b": 1}), ("other", {"b": 0, "a": 1})):
        (tmp_path / name).mkdir()
        tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="a"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.save(str(tmp_path / name / "tokenizer.json"))
        write(tmp_path / name)
    with pytest.raises(UsageError, match="have different tokenizers"):
        measure(tmp_path / "own", tmp_path / "other", Text(("a b a",)))


def card(**changes):
    fields = {
        "schema": 1, "artifact": "key", "quantization": "q4f16_1", "target": "cpu",
        "activations": "int8", "kv_dtype": "float16", "reference": "boat",
        "reference_quantization": "q0f16", "text": "0" * 64, "tokens": 900, "kl_mean": 0.03,
        "kl_p99": 0.5, "top1_agreement": 0.95, "perplexity": 20.0, "reference_perplexity": 19.0,
    }  # fmt: skip
    return Card(**fields | changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kl_mean": 0.004}, "boat in q4f16_1 is as good as"),
        ({}, "is close to the model it was compiled from: few answers change, and seldom in what"),
        (
            {"kl_mean": 0.1},
            "is somewhat worse than .* differ\\). For less loss, type: --",
        ),
        ({"kl_mean": 3.0, "quantization": "q8f16_1"}, "is far from .* next words differ\\).$"),
        ({"perplexity": 18903.0, "reference_perplexity": 9e4}, "the text is foreign to this model"),
    ],
)
def test_a_sentence_says_what_the_numbers_mean(changes, said):
    lines = list(quality.lines(card(**changes)))
    assert re.search(said, " ".join(lines)) and max(map(len, lines)) <= 100


def test_a_model_may_bring_texts_of_its_own_world(tmp_path):
    demo = evaluation_of("demo")
    assert len(demo.documents) == 40 and "<|assistant|>" in demo.documents[0]
    assert evaluation_of(str(tmp_path)) == evaluation_of("hf://people/boat") != demo
    (tmp_path / OWN).write_text('{"accuracy": 1}')
    with pytest.raises(UsageError, match="is not a JSON list of texts"):
        evaluation_of(str(tmp_path))


@pytest.mark.cpu
def test_the_demo_is_measured_on_what_it_knows():
    measured = json.loads(run("demo", "--json"))
    assert 1 < measured["reference_perplexity"] < measured["perplexity"] < 50
    assert measured["top1_agreement"] > 0.9
