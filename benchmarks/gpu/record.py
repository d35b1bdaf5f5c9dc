"""Records tiny models of every family with transformers' results, for a machine without a compiler.

Each model has a folder: `model/`, compiled; `expected.npz` with the prompt and the log-probability
of each prompt token; `case.json` with the tolerance of the scheme's floats and the context.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tests.models.families import CASES
from tests.support.tiny_models import round_weights, save

from wherry.compiler.api import Limits, ensure_artifact
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.load import describe
from wherry.quant.scheme import find as find_scheme

LENGTH = 70  # tokens of a prompt: several pages, and longer than the families' sliding windows
# Seed of the first prompt, the number of prompts that are tried, disturbances of each, and their
# size over the bound: of 16 bits four times the errors of float16.
_FIRST, _PROMPTS, _TRIALS, _NOISE = 4, 6, 4, 1 / 16
CONTEXT = 128  # tokens, if the model has as many
LIMITS = Limits(max_batch=4, prefill_chunk=64)
BOUNDS = {"q0f32": 1e-3, "q4f32_1": 1e-3, **dict.fromkeys(("q4f16_1", "q8f16_1", "q0f16"), 3e-2)}


def record_models(out: Path, target: str, names: Iterable[str], quant: str) -> None:
    """Compile the families' test cases and record the results of transformers."""
    for name in names:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            model = save(Path(folder), case.model_type, **case.config)
            round_weights(model, find_scheme(quant))
            record_model(out / f"{name}-{quant}", Path(folder), model, target, quant)


def record_model(
    place: Path, folder: Path, model: torch.nn.Module, target: str, quant: str | None
) -> None:
    """Compile a model folder and record the results of transformers' `model`.

    `quant`: None for the encoding of a quantized checkpoint.
    """
    place.mkdir(parents=True)
    context = min(CONTEXT, describe(read_folder(folder)).config.longest)
    limits = replace(LIMITS, context=context)
    compiled = ensure_artifact(str(folder), target=target, quant=quant, limits=limits)
    shutil.copytree(compiled, place / "model")
    bound = BOUNDS[quant or "q4f16_1"]
    prompt, logprobs = steady_prompt(model, bound)
    np.savez_compressed(place / "expected.npz", prompt=prompt, logprobs=logprobs)
    (place / "case.json").write_text(json.dumps({"bound": bound, "context": context}))


def steady_prompt(
    model: torch.nn.Module, bound: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a random prompt, int64 [LENGTH], and log-probabilities of its tokens but the first.

    Where a router's scores of two experts are nearly alike, float16 decides between them, in any
    implementation: transformers' own AFMoE in float16 is more than 0.03 from itself in float32 in
    14 of 60 prompts. So the prompt is the first that small errors change by less than half of
    `bound`, or the one of `_PROMPTS` that they change least.
    """
    vocabulary: int = model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    candidates = []
    for seed in range(_FIRST, _FIRST + _PROMPTS):
        prompt = np.random.default_rng(seed).integers(0, vocabulary, LENGTH)
        exact = _logprobs(model, prompt)
        with _disturbed(model, _NOISE * bound, seed):
            changed = [np.abs(_logprobs(model, prompt) - exact).max() for _ in range(_TRIALS)]
        candidates.append((float(max(changed)), seed, prompt, exact))
        if max(changed) < bound / 2:
            break
    _, _, prompt, exact = min(candidates, key=lambda each: each[:2])
    return prompt, exact


def _logprobs(model: torch.nn.Module, prompt: NDArray[np.int64]) -> NDArray[np.float64]:
    with torch.no_grad():
        logits = model(torch.tensor(prompt[None])).logits[0].double()
    logprobs: NDArray[np.float64] = torch.log_softmax(logits, -1).numpy()
    return logprobs[np.arange(LENGTH - 1), prompt[1:]]


@contextmanager
def _disturbed(model: torch.nn.Module, most: float, seed: int) -> Iterator[None]:
    """Give all linears inputs with random errors, at most `most` of a number."""
    random = torch.Generator().manual_seed(seed)

    def disturb(_: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        x, *others = given
        noise = 2 * torch.rand(x.shape, generator=random) - 1
        return (x * (1 + most * noise), *others)

    linears = [each for each in model.modules() if isinstance(each, torch.nn.Linear)]
    handles = [each.register_forward_pre_hook(disturb) for each in linears]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
