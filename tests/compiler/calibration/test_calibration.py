"""Calibration: inputs as transformers computes them, less loss, resumed where it ended."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wherry.compiler.api import AllowedSchemes, convert_model
from wherry.compiler.calibration import choice, encode, worker
from wherry.compiler.calibration.program import Captured, run
from wherry.compiler.checkpoint.assemble import blocks
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.encoding import read_plan
from wherry.compiler.library.export import parameters
from wherry.compiler.load import Described, describe
from wherry.compiler.quality.texts import given, windows
from wherry.compiler.weight_cache import load_state
from wherry.compiler.weight_marker import own_of
from wherry.quant.feedback import Feedback
from wherry.quant.mix import base_of, mix_of
from wherry.quant.plan import SchemeRows
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
TEXT = "The old mill by the river grinds no corn today, but its wheel still turns at night. " * 8


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
    pieces = []
    for part in parts or (SchemeRows(name, rows, find("q4f16_1")),):
        prefix = part.name.removesuffix("weight")
        own = {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}
        pieces.append(part.scheme.decode(own, columns))
    return np.concatenate(pieces)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    save(folder, "llama")
    write_tokenizer(folder)
    (folder / "mill.txt").write_text(TEXT)
    return folder


def nightly(*names: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.nightly) for name in names]


def matrices(described: Described) -> dict[str, np.ndarray]:
    """Return the parameters of a checkpoint by name, in floats."""
    shapes = parameters(described.arch, described.config)
    checkpoint, weight_plan, _ = read_plan(described, shapes)
    arrays = {}
    for plan in weight_plan.parameters:
        rows = [np.atleast_1d(rows) for _, rows in blocks(plan, checkpoint)]
        arrays[plan.name] = np.concatenate(rows).reshape(plan.shape)
    return arrays


def results(w: np.ndarray, x: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """Return what a linear w [out, in] or experts w [experts, out, in] compute."""
    if w.ndim == 2:
        return x @ w.T
    count = 1 if ids is None else ids.shape[1]
    each = np.arange(len(x)) % len(w) if ids is None else ids.reshape(-1)
    rows = np.arange(len(each)) // (1 if len(x) == len(each) else count)
    return np.stack([w[e] @ x[row] for e, row in zip(each, rows, strict=True)])


@pytest.mark.cpu
@pytest.mark.parametrize(
    "name",
    [
        *("llama", "gpt_oss", "deepseek_v3", "lfm2"),
        *nightly("qwen3_moe", "gemma4-experts", "qwen3_next", "mamba2", "recurrent_gemma"),
    ],
)
@pytest.mark.by_day("llama", "deepseek_v3")
@pytest.mark.by_day("deepseek_v3")
def test_the_program_computes_what_transformers_does(tmp_path, name):
    """With exact weights."""
    case = CASES[name]
    model, described = (
        save(tmp_path, case.model_type, **case.config),
        describe(read_folder(tmp_path)),
    )
    exact, names = find("q0f32"), []
    captured, weights = Captured.of(described, exact), matrices(described)

    def linear(name: str, x: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
        names.append(name)
        return results(weights[name], x, ids)

    hidden = run(captured, described, exact, TEXTS, weights.__getitem__, linear)
    assert set(names) == set(captured.weights) and len(names) >= 6  # shared experts swap places
    assert any("expert" in name for name in names) == ("expert" in str(list(weights)))
    with torch.no_grad():
        expected = [model.base_model(torch.tensor([t])).last_hidden_state[0].numpy() for t in TEXTS]
    np.testing.assert_allclose(hidden, np.concatenate(expected), rtol=2e-4, atol=2e-5)


@pytest.mark.cpu
@pytest.mark.nightly
def test_a_calibrated_conversion_is_resumed_and_ends_the_same(folder, tmp_path, monkeypatch):
    text = str(folder / "mill.txt")
    convert_model(str(folder), tmp_path / "whole", calibration=text)
    uninterrupted = load_state(tmp_path / "whole")
    searched = load_state(convert_model(str(folder), tmp_path / "searched"))
    assert {n: (a.shape, a.dtype) for n, a in uninterrupted.items()} == {
        n: (a.shape, a.dtype) for n, a in searched.items()
    }
    changed = {n for n in uninterrupted if not np.array_equal(uninterrupted[n], searched[n])}
    linears = {n for n in uninterrupted if "_proj.q_" in n or n.startswith("lm_head.q_")}
    assert changed == linears  # the embedding is a lookup, and norms are floats

    calls: list[int] = []

    def interrupted(x: np.ndarray, *others: Any) -> Feedback:
        calls.append(x.shape[1])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return Feedback(x, *others)

    monkeypatch.setattr(worker, "Feedback", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert_model(str(folder), tmp_path / "parts", calibration=text)
    convert_model(str(folder), tmp_path / "parts", calibration=text)
    assert len(calls) == 4 + 9 - 3  # eight linears and the head; three were done
    resumed = load_state(tmp_path / "parts")
    assert all(np.array_equal(resumed[n], array) for n, array in uninterrupted.items())
    assert not list((tmp_path / "parts").glob(".wherry*"))
    convert_model(str(folder), tmp_path / "parts", calibration=text)
    assert len(calls) == 10  # it is complete


@pytest.mark.cpu
@pytest.mark.parametrize("quant", ["q4f16_1", "q3_k", "auto:3.8"])
@pytest.mark.by_day("q3_k")
def test_a_tied_model_s_results_have_less_error_than_by_search(tmp_path, quant):
    """Also in block types, and where the matrices of a parameter have different ones."""
    source = tmp_path / "source"
    model = save(source, "llama", tie_word_embeddings=True, intermediate_size=128)
    write_tokenizer(source)
    (source / "mill.txt").write_text(TEXT)
    state = {name: p.detach().numpy() for name, p in model.named_parameters()}
    own = {"quant": quant, "allowed": AllowedSchemes(types=frozenset(TYPES))}
    folders = {
        kind: convert_model(str(source), tmp_path / kind, calibration=text, **own)
        for kind, text in (("searched", "none"), ("calibrated", str(source / "mill.txt")))
    }
    inputs: dict[str, np.ndarray] = {}

    def linear(name: str, x: np.ndarray, _ids: None) -> np.ndarray:
        inputs[name] = x
        return x @ joined(state, name).T

    def stored(name: str) -> np.ndarray:
        if ".q_" in name:
            encoded = find("q8f32_1").encode(state["model.embed_tokens.weight"])
            return encoded[name.split(".")[-1]]
        return state[name]

    described = describe(read_folder(source))
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
@pytest.mark.parametrize(
    "name", ["qwen3_moe", *nightly("deepseek_v3", "gpt_oss", "mamba2", "lfm2_moe", "qwen3_next")]
)
@pytest.mark.nightly
def test_experts_and_recurrent_layers_have_less_error_than_by_search(tmp_path, name, monkeypatch):
    """At the end of the model; a conversion that ended early is resumed."""
    case, source = CASES[name], tmp_path / "source"
    save(source, case.model_type, **case.config)
    write_tokenizer(source)
    text, plain = source / "mill.txt", worker.Worker.linear
    text.write_text(TEXT)
    left = iter(range(4))

    def interrupted(*args: Any) -> np.ndarray:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return plain(*args)

    monkeypatch.setattr(worker.Worker, "linear", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert_model(str(source), tmp_path / "calibrated", calibration=str(text))
    monkeypatch.setattr(worker.Worker, "linear", plain)
    folders = {
        kind: convert_model(str(source), tmp_path / kind, quant="q4f16_1", calibration=given)
        for kind, given in (("searched", "none"), ("calibrated", str(text)))
    }
    described, exact = describe(read_folder(source)), find("q0f32")
    weights, captured = matrices(described), Captured.of(described, exact)
    texts = windows(given(text), source, 64)

    def hidden(folder: Path | None) -> np.ndarray:
        def linear(name: str, x: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
            w = weights[name]
            if folder is not None:
                w = decoded(folder, name, w.size // w.shape[-1], w.shape[-1]).reshape(w.shape)
            return results(w, x, ids)

        return run(captured, described, exact, texts, weights.__getitem__, linear)

    expected = hidden(None)
    errors = {kind: float(np.square(hidden(out) - expected).sum()) for kind, out in folders.items()}
    assert errors["calibrated"] < 0.9 * errors["searched"]


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
    described = describe(read_folder(folder))
    shapes = parameters(described.arch, described.config)

    def calibrated(quant: str = "q4f16_1", source: Path = folder) -> bool:
        scheme, mix = base_of(quant), mix_of(quant)
        given = replace(described, folder=replace(described.folder, path=source))
        return bool(choice.calibration_of(given, choice.AUTO, shapes, scheme, mix))

    assert not calibrated()  # of a test's size
    monkeypatch.setattr(choice, "_LEAST_WEIGHTS", 1)
    assert calibrated() and calibrated("q3_k") and calibrated("auto:4.5")
    assert not any(map(calibrated, ("q8f16_1", "q0f32", "q6_k", "auto:6")))
    assert not calibrated(source=tmp_path)  # no tokenizer
    needed = encode.memory_bytes(shapes)
    for free, fits in ((None, True), (needed, True), (needed - 1, False)):
        monkeypatch.setattr(choice, "available", lambda free=free: free)
        assert choice.fits(shapes) == fits
    assert choice.work({"a": (4,), "b": (7, 2), "experts": (5, 7, 2)}) == 3 * 2**3 * (1 + 5)
    monkeypatch.setattr(choice, "_MOST_WORK", choice.work(shapes) - 1)
    assert not calibrated()
