"""Records tiny models of every family with transformers' results, for a machine without a compiler.

Each model has a folder: `model/`, compiled; `expected.npz` with the prompt and the log-probability
of each prompt token; `case.json` with the tolerance of the scheme's floats and the context.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tests.models.families import CASES
from tests.support.tiny_models import round_weights, save

from wherry.compiler.api import Limits, ensure_artifact
from wherry.compiler.load import describe
from wherry.quant.scheme import find as find_scheme

LENGTH = 70  # tokens of a prompt: several pages, and longer than the families' sliding windows
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
    context = min(CONTEXT, describe(folder).config.longest)
    limits = replace(LIMITS, context=context)
    compiled = ensure_artifact(str(folder), target=target, quant=quant, limits=limits)
    shutil.copytree(compiled, place / "model")
    vocabulary: int = model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    prompt = np.random.default_rng(4).integers(0, vocabulary, LENGTH)
    with torch.no_grad():
        logits = model(torch.tensor(prompt[None])).logits[0].double()
    logprobs = torch.log_softmax(logits, -1).numpy()
    of_prompt = logprobs[np.arange(LENGTH - 1), prompt[1:]]
    np.savez_compressed(place / "expected.npz", prompt=prompt, logprobs=of_prompt)
    told = {"bound": BOUNDS[quant or "q4f16_1"], "context": context}
    (place / "case.json").write_text(json.dumps(told))
