"""What 4-bit weights cost, and that 8-bit activations add next to nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import wherry
from wherry.quant.scheme import find

from ..support.tiny_models import Runner, compiled

DEMO = Path(wherry.__path__[0]) / "demo"
TEXTS = (
    "Tell me a story about a fox who wants to cross the river.",
    "What is the capital of France? The capital of France is Paris.",
    "Once upon a time there was a small bear. The bear lived near a hill and liked to sing.",
    "What is Wherry? Wherry compiles language models for many devices.",
)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def divergence(reference: np.ndarray, other: np.ndarray) -> float:
    """Mean KL divergence over positions, in nats, float64."""
    p, q = (log_softmax(x.astype(np.float64)) for x in (reference, other))
    return float((np.exp(p) * (p - q)).sum(-1).mean())


def round_weights(model: torch.nn.Module, scheme_name: str) -> None:
    """Replace what the scheme quantizes by what it stores, in place."""
    scheme = find(scheme_name)
    with torch.no_grad():
        for name, p in model.named_parameters():
            w = p.numpy()
            if scheme.quantizes(name, w.shape):
                p.copy_(torch.from_numpy(scheme.decode(scheme.encode(w), w.shape[-1])))


@pytest.fixture(scope="module")
def demo_texts():
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    return [tokenizer(text).input_ids for text in TEXTS]


@pytest.fixture
def demo_model():
    return transformers.AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()


def logits_of(model: torch.nn.Module, texts: list[list[int]]) -> np.ndarray:
    with torch.no_grad():
        return np.concatenate([model(torch.tensor([ids])).logits[0].numpy() for ids in texts])


def our_logits(quant: str, texts: list[list[int]], kv_dtype: str = "float32") -> np.ndarray:
    run = Runner(compiled(DEMO, quant=quant, kv_dtype=kv_dtype))
    return np.concatenate([run.step({n: ids})[n] for n, ids in enumerate(texts)])


@pytest.mark.cpu
def test_8_bit_activations_add_at_most_a_tenth_to_the_divergence(demo_texts, demo_model):
    exact = logits_of(demo_model, demo_texts)
    round_weights(demo_model, "q4f16_1")
    rounded = divergence(exact, logits_of(demo_model, demo_texts))
    ours = divergence(exact, our_logits("q4f16_1", demo_texts))
    assert 1e-5 < rounded < 1  # 4 bits cost something, and not everything
    assert ours <= 1.1 * rounded


@pytest.mark.cpu
def test_8_bit_weights_and_activations_cost_next_to_nothing(demo_texts, demo_model):
    exact = logits_of(demo_model, demo_texts)
    ours = divergence(exact, our_logits("q8f16_1", demo_texts))
    round_weights(demo_model, "q4f16_1")
    assert 1e-9 < ours < 0.02 * divergence(exact, logits_of(demo_model, demo_texts))


@pytest.mark.cpu
def test_8_bit_activations_cost_about_what_8_bit_weights_do(demo_texts, demo_model):
    """Less than 2.5 times; powers of two as their scales would cost 3.5 times."""
    exact = logits_of(demo_model, demo_texts)
    round_weights(demo_model, "q8f16_1")
    rounded = logits_of(demo_model, demo_texts)
    ours = our_logits("q8f16_1", demo_texts)
    assert 1e-9 < divergence(rounded, ours) < 2.5 * divergence(exact, rounded)


@pytest.mark.cpu
def test_an_int8_cache_costs_little(demo_texts):
    half, whole = (our_logits("q4f16_1", demo_texts, kv) for kv in ("float16", "int8"))
    assert 0 < divergence(half, whole) < 1.5e-3
