"""SmolLM2-135M-Instruct in Q4_1 beside llama.cpp, which computes with the same blocks.

Both round activations to 8 bits, each in its own way, so logits differ a little, and tokens only
where the two most likely ones are nearly equal. Such ties are printed (`pytest -s`). `support/
llama_cpp.py` says how llama.cpp's library is built and given to this test.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

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
def theirs(file, prompts, tmp_path_factory) -> tuple[np.ndarray, np.ndarray]:
    """llama.cpp's greedy tokens [prompts, TOKENS] and the logits of each [.., vocabulary]."""
    folder = tmp_path_factory.mktemp("llama")
    command = [*llama_cpp.driver(folder), str(file), str(TOKENS), str(folder / "logits")]
    lines = "".join(" ".join(map(str, ids)) + "\n" for ids in prompts)
    made = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    tokens = np.array([[int(x) for x in line.split()] for line in made.stdout.splitlines()])
    logits = np.fromfile(folder / "logits", np.float32).reshape(*tokens.shape, -1)
    return tokens, logits


def logits(file: Path, prompts, tokens, **options) -> np.ndarray:
    """The logits from which each of `tokens` [prompts, n] is taken, when all before are given."""
    run = Runner(ensure_artifact(str(file), limits=LIMITS, **options), pages=256)
    made = []
    for i, (ids, row) in enumerate(zip(prompts, tokens.tolist(), strict=True)):
        given, size = [*ids, *row[:-1]], LIMITS.prefill_chunk
        rows = [run.step({i: given[at : at + size]})[i] for at in range(0, len(given), size)]
        made.append(np.concatenate(rows)[len(ids) - 1 :])
    return np.stack(made)


@pytest.fixture(scope="module")
def ours(file, prompts, theirs) -> np.ndarray:
    """The same logits in Wherry, by default: the file's own bits, and activations in 8 bits."""
    return logits(file, prompts, theirs[0])


def test_greedy_tokens_and_logits(file, prompts, theirs, ours):
    tokens, reference = theirs
    exact = logits(file, prompts, tokens, quant="kept", activations="float", kv_dtype="float32")
    chosen = ours.argmax(-1)
    for i, t in np.argwhere(chosen != tokens):
        a, b = tokens[i, t], chosen[i, t]
        margins = [round(float(x[i, t, a] - x[i, t, b]), 3) for x in (reference, ours, exact)]
        print(f"prompt {i}, token {t}: {a} or {b}; margins of llama.cpp, ours, exact: {margins}")
    centred = [x - x.mean(-1, keepdims=True) for x in (reference, ours, exact)]
    rounding = [float(np.sqrt(np.mean((x - centred[2]) ** 2))) for x in centred[:2]]
    print(f"RMS of rounding in logits: llama.cpp {rounding[0]:.4f}, ours {rounding[1]:.4f}")
    print(f"{(chosen != tokens).sum()} of {tokens.size} tokens differ")
    assert rounding[1] <= 1.25 * rounding[0]
    # Where tokens differ, exact arithmetic hardly prefers one of them either.
    best = np.sort(exact, -1)[..., -2:]
    ties = (best[..., 1] - best[..., 0])[chosen != tokens]
    assert ties.max(initial=0) <= 6 * max(rounding)
    assert len(ties) <= 0.03 * tokens.size


def test_the_engine_generates_these_tokens(file, theirs, ours):
    """All of llama.cpp's tokens up to the end of the answer or the first tie."""
    tokens, _ = theirs
    folder = ensure_artifact(str(file), limits=LIMITS)
    tokenizer = Tokenizer.from_folder(folder)
    whole = 0
    with MLCEngine(str(folder)) as engine:
        for i, question in enumerate(QUESTIONS):
            made = engine.chat.completions.create(
                messages=[{"role": "user", "content": question}], temperature=0, max_tokens=TOKENS
            )
            content = made.choices[0].message.content
            differ = np.flatnonzero(ours[i].argmax(-1) != tokens[i])
            ends = np.flatnonzero(np.isin(tokens[i], tokenizer.eos_ids))
            stop = min(int(x[0]) if len(x) else TOKENS for x in (differ, ends))
            expected = tokenizer.decode(tokens[i, :stop].tolist()).rstrip("\ufffd")
            assert content.startswith(expected), f"{question}: {content!r}, not {expected!r}"
            whole += content == expected
            assert i or "Paris" in content
    print(f"{whole} of {len(QUESTIONS)} answers are llama.cpp's to the end")
