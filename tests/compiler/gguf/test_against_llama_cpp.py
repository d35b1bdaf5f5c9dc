"""SmolLM2-135M-Instruct in Q4_1 against llama.cpp, which reads the same file.

With floats everywhere both compute the same. By default both round activations to 8 bits, each in
its own way: logits differ a little, and tokens only where the two most likely ones are nearly
equal. Such ties are printed (`pytest -s`). `support/llama_cpp.py` says how llama.cpp's library is
built and given to these tests.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from wherry import MLCEngine
from wherry.compiler.api import Limits, ensure_artifact
from wherry.compiler.checkpoint.gguf.folder import unfold
from wherry.runtime.text.chat_template import from_folder
from wherry.runtime.text.tokenizer import Tokenizer

from ...support import llama_cpp
from ...support.smollm2 import model_file
from ...support.tiny_models import Runner

pytestmark = pytest.mark.nightly
TOKENS = 64
QUESTIONS = (
    "What is the capital of France, and what is it known for?",
    "Write a short poem about the sea.",
    "Explain how a bicycle stays upright.",
    "List five kinds of fruit and their colours.",
    "Who wrote Romeo and Juliet?",
    "How do I boil an egg?",
    "Translate 'good morning' into Spanish and French.",
    "What is the difference between a virus and a bacterium?",
    "Write a Python function that adds two numbers.",
    "Tell me a story about a fox and a crow.",
)

EXACT = {"quant": "kept", "activations": "float", "kv_dtype": "float32"}  # nothing is rounded
# A chunk of 64 rows has logits of all rows.
LIMITS = Limits(context=256, max_batch=64, prefill_chunk=64)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return model_file(tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="module")
def prompts(file, tmp_path_factory) -> list[list[int]]:
    folder = unfold(file, tmp_path_factory.mktemp("folder"))
    tokenizer = Tokenizer.from_folder(folder)
    template = from_folder(folder, tokenizer.special_tokens)
    texts = [template.render([{"role": "user", "content": q}]) for q in QUESTIONS]
    return [tokenizer.encode(text, add_special_tokens=False) for text in texts]


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> list[str]:
    """The command of llama.cpp's greedy generation."""
    return llama_cpp.driver(tmp_path_factory.mktemp("llama"))


def greedy(driver: list[str], file: Path, prompts, out: Path, *options) -> tuple[Any, Any]:
    """llama.cpp's greedy tokens [prompts, TOKENS] and the logits of each [.., vocabulary]."""
    command = [*driver, str(file), str(TOKENS), str(out), *options]
    lines = "".join(" ".join(map(str, ids)) + "\n" for ids in prompts)
    process = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    tokens = np.array([[int(x) for x in line.split()] for line in process.stdout.splitlines()])
    return tokens, np.fromfile(out, np.float32).reshape(*tokens.shape, -1)


@pytest.fixture(scope="module")
def llama_cpp_result(driver, file, prompts, tmp_path_factory) -> tuple[np.ndarray, np.ndarray]:
    """llama.cpp's tokens and logits by default."""
    return greedy(driver, file, prompts, tmp_path_factory.mktemp("default") / "logits")


def logits(file: Path, prompts, tokens, **options) -> np.ndarray:
    """The logits from which each of `tokens` [prompts, n] is taken, when all before are given."""
    run = Runner(ensure_artifact(str(file), limits=LIMITS, **options), pages=256)
    stacked = []
    for i, (ids, row) in enumerate(zip(prompts, tokens.tolist(), strict=True)):
        given, size = [*ids, *row[:-1]], LIMITS.prefill_chunk
        rows = [run.step({i: given[at : at + size]})[i] for at in range(0, len(given), size)]
        stacked.append(np.concatenate(rows)[len(ids) - 1 :])
    return np.stack(stacked)


@pytest.fixture(scope="module")
def logits_here(file, prompts, llama_cpp_result) -> np.ndarray:
    """The same logits in Wherry, by default: the file's own bits, and activations in 8 bits."""
    return logits(file, prompts, llama_cpp_result[0])


def as_floats(file: Path, out: Path) -> Path:
    """Write a GGUF file with all tensors as float32."""
    read = gguf.GGUFReader(file)
    writer = gguf.GGUFWriter(out, str(read.fields["general.architecture"].contents()))
    for name, field in read.fields.items():
        if name != "general.architecture" and not name.startswith("GGUF."):
            kind, *each = field.types
            writer.add_key_value(name, field.contents(), kind, each[-1] if each else None)
    for tensor in read.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out


def test_with_floats_all_tokens_are_the_same(driver, file, prompts, tmp_path):
    """The same weights as float32 in llama.cpp, and as blocks with float activations here."""
    wide = as_floats(file, tmp_path / "wide.gguf")
    tokens, reference = greedy(driver, wide, prompts, tmp_path / "logits", "float32")
    wide.unlink()
    exact = logits(file, prompts, tokens, **EXACT)
    apart = float(np.abs(exact - reference).max())
    margins = np.diff(np.sort(reference, -1)[..., -2:], axis=-1)
    differ = int((exact.argmax(-1) != tokens).sum())
    print(f"floats: logits differ by {apart:.4f} at most, margins are {margins.min():.4f} at least")
    print(f"floats: {differ} of {tokens.size} tokens differ")
    # llama.cpp's logits are 0.053 from those of transformers, too, and ours 0.0001.
    assert apart <= 0.1
    assert differ == 0 or margins.min() <= 2 * apart


def test_greedy_tokens_and_logits(file, prompts, llama_cpp_result, logits_here):
    tokens, reference = llama_cpp_result
    exact = logits(file, prompts, tokens, **EXACT)
    chosen = logits_here.argmax(-1)
    for i, t in np.argwhere(chosen != tokens):
        a, b = tokens[i, t], chosen[i, t]
        margins = [
            round(float(x[i, t, a] - x[i, t, b]), 3) for x in (reference, logits_here, exact)
        ]
        print(f"prompt {i}, token {t}: {a} or {b}; margins of llama.cpp, ours, exact: {margins}")
    centred = [x - x.mean(-1, keepdims=True) for x in (reference, logits_here, exact)]
    rounding = [float(np.sqrt(np.mean((x - centred[2]) ** 2))) for x in centred[:2]]
    print(f"RMS of rounding in logits: llama.cpp {rounding[0]:.4f}, ours {rounding[1]:.4f}")
    print(f"{(chosen != tokens).sum()} of {tokens.size} tokens differ")
    assert rounding[1] <= 1.25 * rounding[0]
    # Where tokens differ, exact arithmetic hardly prefers one of them either.
    best = np.sort(exact, -1)[..., -2:]
    ties = (best[..., 1] - best[..., 0])[chosen != tokens]
    assert ties.max(initial=0) <= 6 * max(rounding)
    assert len(ties) <= 0.05 * tokens.size


def test_the_engine_generates_these_tokens(file, llama_cpp_result, logits_here):
    """All of llama.cpp's tokens up to the end of the answer or the first tie."""
    tokens, _ = llama_cpp_result
    folder = ensure_artifact(str(file), limits=LIMITS)
    tokenizer = Tokenizer.from_folder(folder)
    complete = 0
    with MLCEngine(str(folder)) as engine:
        for i, question in enumerate(QUESTIONS):
            response = engine.chat.completions.create(
                messages=[{"role": "user", "content": question}], temperature=0, max_tokens=TOKENS
            )
            content = response.choices[0].message.content
            differ = np.flatnonzero(logits_here[i].argmax(-1) != tokens[i])
            ends = np.flatnonzero(np.isin(tokens[i], tokenizer.eos_ids))
            stop = min(int(x[0]) if len(x) else TOKENS for x in (differ, ends))
            expected = tokenizer.decode(tokens[i, :stop].tolist()).rstrip("\ufffd")
            assert content.startswith(expected), f"{question}: {content!r}, not {expected!r}"
            complete += content == expected
            assert i or "Paris" in content
    print(f"{complete} of {len(QUESTIONS)} answers are llama.cpp's to the end")
