"""Calibration: inputs as transformers computes them, less loss, resumed where it ended."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wherry.compiler.api import Allowed, convert_model
from wherry.compiler.calibration import choice, encode
from wherry.compiler.calibration.program import Captured, run
from wherry.compiler.library.export import parameters
from wherry.compiler.load import describe
from wherry.compiler.quality.texts import given, windows
from wherry.compiler.weight_cache import load_state
from wherry.compiler.weight_marker import own_of
from wherry.quant.feedback import Feedback
from wherry.quant.mix import base_of, mix_of
from wherry.quant.plan import Rows
from wherry.quant.scheme import TYPES, find

from ...cli.test_commands import write_tokenizer
from ...models.encoders import CASES as ENCODERS
from ...models.encoders import save as save_encoder
from ...models.families import CASES
from ...support.tiny_models import save

TEXTS = [
    [1, 7, 30, 12, 250, 99],
    [1, 5, 5, 80, 31, 2, 9, 44, 100, 3, 61, 17, 18, 19, 20, 21, 22, 23],
]
SCHEME = find("q4f32_1")
TEXT = "The old mill by the river grinds no corn today, but its wheel still turns at night. " * 8


def rounded(w: np.ndarray) -> np.ndarray:
    return SCHEME.decode(SCHEME.encode(w), w.shape[-1])


def joined(state: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return the weight of a linear, from transformers' of the matrices that it joins."""
    layer, _, fused = name.removesuffix("_proj.weight").rpartition(".")
    pieces = {"qkv": "qkv", "gate_up": ("gate", "up")}.get(fused, (fused,))
    if name in state:
        return state[name]
    return np.concatenate([state[f"{layer}.{piece}_proj.weight"] for piece in pieces])


def decoded(folder: Path, name: str, rows: int, columns: int) -> np.ndarray:
    """Return the weight that a converted folder has, of one part or several."""
    state, parts = load_state(folder), own_of(folder).get(name)
    found = []
    for part in parts or (Rows(name, rows, find("q4f16_1")),):
        prefix = part.name.removesuffix("weight")
        own = {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}
        found.append(part.scheme.decode(own, columns))
    return np.concatenate(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    save(folder, "llama")
    write_tokenizer(folder)
    (folder / "mill.txt").write_text(TEXT)
    return folder


@pytest.mark.cpu
def test_the_program_computes_what_transformers_does(folder, tmp_path):
    """With exact linears; the embedding alone is in the scheme."""
    model, described = save(tmp_path, "llama"), describe(folder)
    state = {name: p.detach().numpy() for name, p in model.named_parameters()}
    with torch.no_grad():
        table = model.model.embed_tokens.weight
        table.copy_(torch.from_numpy(rounded(table.numpy())))
    captured = Captured.of(described, SCHEME)
    names: list[str] = []

    def stored(name: str) -> np.ndarray:
        if name.startswith("model.embed_tokens.q_"):
            return SCHEME.encode(state["model.embed_tokens.weight"])[name.split(".")[-1]]
        return state[name]

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        names.append(name)
        return x @ joined(state, name).T

    found = run(captured, described, SCHEME, TEXTS, stored, linear)
    assert tuple(names) == captured.weights and len(names) == 8
    with torch.no_grad():
        expected = [model.model(torch.tensor([t])).last_hidden_state[0].numpy() for t in TEXTS]
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=2e-4, atol=2e-5)


@pytest.mark.cpu
def test_a_calibrated_conversion_is_resumed_and_ends_the_same(folder, tmp_path, monkeypatch):
    text = str(folder / "mill.txt")
    convert_model(str(folder), tmp_path / "whole", calibration=text)
    whole = load_state(tmp_path / "whole")
    searched = load_state(convert_model(str(folder), tmp_path / "searched"))
    assert {n: (a.shape, a.dtype) for n, a in whole.items()} == {
        n: (a.shape, a.dtype) for n, a in searched.items()
    }
    changed = {n for n in whole if not np.array_equal(whole[n], searched[n])}
    linears = {n for n in whole if "_proj.q_" in n or n.startswith("lm_head.q_")}
    assert changed == linears  # the embedding is a lookup, and norms are floats

    calls: list[int] = []

    def interrupted(x: np.ndarray, *others: Any) -> Feedback:
        calls.append(x.shape[1])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return Feedback(x, *others)

    monkeypatch.setattr(encode, "Feedback", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert_model(str(folder), tmp_path / "parts", calibration=text)
    convert_model(str(folder), tmp_path / "parts", calibration=text)
    assert len(calls) == 4 + 9 - 3  # eight linears and the head; three were done
    resumed = load_state(tmp_path / "parts")
    assert all(np.array_equal(resumed[n], array) for n, array in whole.items())
    assert not list((tmp_path / "parts").glob(".wherry*"))
    convert_model(str(folder), tmp_path / "parts", calibration=text)
    assert len(calls) == 10  # it is complete


@pytest.mark.cpu
@pytest.mark.parametrize("quant", ["q4f16_1", "q3_k", "auto:3.8"])
def test_a_tied_model_s_results_have_less_error_than_by_search(tmp_path, quant):
    """Also in block types, and where the matrices of a parameter have different ones."""
    source = tmp_path / "source"
    model = save(source, "llama", tie_word_embeddings=True, intermediate_size=128)
    write_tokenizer(source)
    (source / "mill.txt").write_text(TEXT)
    state = {name: p.detach().numpy() for name, p in model.named_parameters()}
    own = {"quant": quant, "allowed": Allowed(types=frozenset(TYPES))}
    folders = {
        kind: convert_model(str(source), tmp_path / kind, calibration=text, **own)
        for kind, text in (("searched", "none"), ("calibrated", str(source / "mill.txt")))
    }
    inputs: dict[str, np.ndarray] = {}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        inputs[name] = x
        return x @ joined(state, name).T

    def stored(name: str) -> np.ndarray:
        if ".q_" in name:
            made = find("q8f32_1").encode(state["model.embed_tokens.weight"])
            return made[name.split(".")[-1]]
        return state[name]

    described = describe(source)
    captured = Captured.of(described, find("q8f32_1"))
    texts = windows(given(source / "mill.txt"), source, 64)
    head = run(captured, described, find("q8f32_1"), texts, stored, linear)
    inputs["model.embed_tokens.weight"] = head
    several = False
    for name, x in inputs.items():
        w = joined(state, name)
        searched, calibrated = (
            float(np.square(x @ (decoded(folders[kind], name, *w.shape) - w).T).sum())
            for kind in ("searched", "calibrated")
        )
        assert calibrated < 0.9 * searched, name
        several |= len(own_of(folders["calibrated"]).get(name, ())) > 1
    assert several == (quant == "auto:3.8")


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["bert", pytest.param("modernbert", marks=pytest.mark.nightly)])
def test_an_encoder(tmp_path, name):
    save_encoder(tmp_path, ENCODERS[name])
    write_tokenizer(tmp_path)
    (tmp_path / "mill.txt").write_text(TEXT)
    searched, calibrated = (
        load_state(convert_model(str(tmp_path), tmp_path / kind, quant="q4f16_1", calibration=text))
        for kind, text in (("searched", "none"), ("calibrated", str(tmp_path / "mill.txt")))
    )
    changed = {n for n in searched if not np.array_equal(searched[n], calibrated[n])}
    assert len(changed) >= 2 * 4 * 2 and all(".q_" in n and "embed" not in n for n in changed)


@pytest.mark.cpu
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["apertus", "gemma3n"])  # scalars; parameters that stay exact
def test_parameters_of_other_kinds(tmp_path, name):
    save(tmp_path, CASES[name].model_type, **CASES[name].config)
    write_tokenizer(tmp_path)
    (tmp_path / "mill.txt").write_text(TEXT[:200])
    out = convert_model(str(tmp_path), tmp_path / "out", calibration=str(tmp_path / "mill.txt"))
    assert any(".q_weight" in n for n in load_state(out))


@pytest.mark.parametrize(
    ("quant", "said"), [("q8f16_1", "q8f16_1 has no 4-bit weights"), ("q0f32", "has no 4-bit")]
)
def test_what_is_not_calibrated_is_said(folder, tmp_path, caplog, quant, said):
    with caplog.at_level(logging.WARNING):
        convert_model(str(folder), tmp_path / "out", quant=quant, calibration="builtin")
    assert said in caplog.text


def test_the_default_calibrates_models_that_gain_and_are_quick(folder, tmp_path, monkeypatch):
    described = describe(folder)
    shapes = parameters(described.arch, described.config)

    def calibrated(quant: str = "q4f16_1", source: Path = folder) -> bool:
        scheme, mix = base_of(quant), mix_of(quant)
        return bool(choice.calibration_of(described, choice.AUTO, source, shapes, scheme, mix))

    assert not calibrated()  # of a test's size
    monkeypatch.setattr(choice, "_LEAST", 1)
    assert calibrated() and calibrated("q3_k") and calibrated("auto:4.5")
    assert not any(map(calibrated, ("q8f16_1", "q0f32", "q6_k", "auto:6")))
    assert not calibrated(source=tmp_path)  # no tokenizer
    needed = encode.memory_bytes(shapes)
    for free, found in ((None, True), (needed, True), (needed - 1, False)):
        monkeypatch.setattr(choice, "available", lambda free=free: free)
        assert choice.fits(shapes) == found
    monkeypatch.setattr(choice, "_MOST", 10_000)
    assert not calibrated()
