"""What 4-bit weights cost, and that 8-bit activations add next to nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file

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


def our_logits(
    quant: str, texts: list[list[int]], kv_dtype: str = "float32", activations: str = "auto"
) -> np.ndarray:
    run = Runner(compiled(DEMO, quant=quant, kv_dtype=kv_dtype, activations=activations))
    return np.concatenate([run.step({n: ids})[n] for n, ids in enumerate(texts)])


@pytest.mark.cpu
@pytest.mark.nightly
def test_8_bit_activations_add_at_most_a_tenth_to_the_divergence(demo_texts, demo_model):
    exact = logits_of(demo_model, demo_texts)
    round_weights(demo_model, "q4f16_1")
    rounded = divergence(exact, logits_of(demo_model, demo_texts))
    quantized = divergence(exact, our_logits("q4f16_1", demo_texts))
    assert 1e-5 < rounded < 1  # 4 bits cost something, and not everything
    assert quantized <= 1.1 * rounded


@pytest.mark.cpu
@pytest.mark.nightly
def test_8_bit_weights_and_activations_cost_next_to_nothing(demo_texts, demo_model):
    exact = logits_of(demo_model, demo_texts)
    quantized = divergence(exact, our_logits("q8f16_1", demo_texts))
    round_weights(demo_model, "q4f16_1")
    assert 1e-9 < quantized < 0.02 * divergence(exact, logits_of(demo_model, demo_texts))


@pytest.mark.cpu
@pytest.mark.nightly
def test_8_bit_activations_cost_about_what_8_bit_weights_do(demo_texts, demo_model):
    """Less than 2.5 times; powers of two as their scales would cost 3.5 times."""
    exact = logits_of(demo_model, demo_texts)
    round_weights(demo_model, "q8f16_1")
    rounded = logits_of(demo_model, demo_texts)
    quantized = our_logits("q8f16_1", demo_texts)
    assert 1e-9 < divergence(rounded, quantized) < 2.5 * divergence(exact, rounded)


@pytest.mark.cpu
@pytest.mark.nightly
@pytest.mark.parametrize("quant", ["q4f16_1", "q8f32_1"])
def test_float_activations_cost_nothing(demo_texts, demo_model, quant):
    round_weights(demo_model, quant)
    rounded = logits_of(demo_model, demo_texts)
    assert divergence(rounded, our_logits(quant, demo_texts, activations="float")) < 2e-8


@pytest.fixture(scope="module")
def sharp_model(tmp_path_factory):
    """The demo with scores 16 times as large: softmax shows what keys lose."""
    folder = tmp_path_factory.mktemp("sharp")
    shutil.copytree(DEMO, folder, dirs_exist_ok=True)
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        if "q_proj" in name or "k_proj" in name:
            tensor *= 4  # exact in float16
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def greedy(run: Runner, prompts: list[list[int]], count: int) -> list[list[int]]:
    """The prompts, each with its next `count` tokens."""
    texts = [list(prompt) for prompt in prompts]
    logits = run.step(dict(enumerate(texts)))
    for _ in range(count):
        new = {n: [int(rows[-1].argmax())] for n, rows in logits.items()}
        for n, tokens in new.items():
            texts[n] += tokens
        logits = run.step(new)
    return texts


@pytest.mark.cpu
@pytest.mark.nightly
def test_an_int8_cache_holds_sharp_attention(demo_texts, sharp_model):
    """Keys in 8 bits with a scale a head: 118 of 480 tokens differed, in groups of 8 still 79."""

    def runner(kv_dtype: str) -> Runner:
        return Runner(compiled(sharp_model, kv_dtype=kv_dtype))

    texts = greedy(runner("float32"), demo_texts, 120)
    exact, half, quantized = (
        [run.step({0: text})[0] for text in texts for run in [runner(kv)]]
        for kv in ("float32", "float16", "int8")
    )
    generated = [slice(len(prompt) - 1, -1) for prompt in demo_texts]

    def differ(other: list[np.ndarray]) -> int:
        triples = zip(exact, other, generated, strict=True)
        return sum(int((a.argmax(-1) != b.argmax(-1))[where].sum()) for a, b, where in triples)

    assert differ(half) < 24  # of 480; no cache is without effect here
    assert differ(quantized) < 48
    assert divergence(np.concatenate(exact), np.concatenate(quantized)) < 0.05


@pytest.mark.cpu
@pytest.mark.nightly
def test_caches_of_integers_cost_little(demo_texts):
    caches = ("float16", "int8", "int4")
    half, eight, four = (our_logits("q4f16_1", demo_texts, kv) for kv in caches)
    print(f"int8 {divergence(half, eight):.5f}, int4 {divergence(half, four):.5f} nats")
    assert 0 < divergence(half, eight) < 1.5e-3
    assert 0 < divergence(half, four) < 2e-2
