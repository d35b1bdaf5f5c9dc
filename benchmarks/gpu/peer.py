"""Measures transformers: `python -m benchmarks.gpu.peer NAME CONFIG [SIZES]` prints a JSON row.

It runs the model of a `config.json` in bfloat16 with random weights and a static cache, and
compiles the decode step with `torch.compile` and CUDA graphs, as `generate` does for such a cache.
A step's time is the difference between a long run and a short one, which run in turn.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from .measure import STEPS, Sizes

FEW = 8  # tokens that both the shorter and the longer run decode
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_model(config: dict[str, Any]) -> Any:
    """Return a model of a `config.json` with random weights on the device."""
    described = AutoConfig.for_model(**config)
    with torch.device(DEVICE):
        model = AutoModelForCausalLM.from_config(described, dtype=torch.bfloat16)
    return model.eval()


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of one run of `work`."""
    _wait()
    begin = time.perf_counter()
    work()
    _wait()
    return time.perf_counter() - begin


def median(measure: Callable[[], float], times: int) -> float:
    """Return the median of `times` measurements; one more before them is a warm-up."""
    return statistics.median([measure() for _ in range(times + 1)][1:])


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def tokens(model: Any, rows: int, length: int) -> torch.Tensor:
    """Return random token ids [rows, length]."""
    return torch.randint(0, model.config.vocab_size, (rows, length), device=DEVICE)


def prefill(model: Any, length: int) -> float:
    """Return the seconds from a prompt of `length` tokens to the logits of its last token."""
    prompt = tokens(model, 1, length)
    return median(lambda: seconds(lambda: model(prompt, logits_to_keep=1)), 5)


def decode(model: Any, rows: int, context: int) -> float:
    """Return the seconds of a decode step of `rows` sequences."""
    prompt = tokens(model, rows, context)

    def give(count: int) -> Callable[[], Any]:
        return lambda: model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=count,
            min_new_tokens=count,
            max_length=None,
            do_sample=False,
            cache_implementation="static",
            pad_token_id=0,
        )

    many, few = give(FEW + STEPS), give(FEW)
    return median(lambda: seconds(many) - seconds(few), 3) / STEPS


@torch.inference_mode()
def main() -> None:
    """Measure the model; print the row again after each new measurement."""
    name, config, *sizes = sys.argv[1:]
    requested = Sizes(**json.loads(sizes[0])) if sizes else Sizes()
    model = random_model(json.loads(config))
    row: dict[str, Any] = {"peer": "transformers", "model": name, "quant": "bfloat16"}
    row |= {"torch": torch.__version__, "context": requested.context}
    row["prefill_tokens_s"] = requested.prefill / prefill(model, requested.prefill)
    for batch in requested.batches:
        step = decode(model, batch, requested.context)
        row[f"decode_{batch}"] = {"step_s": step, "tokens_s": batch / step}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
