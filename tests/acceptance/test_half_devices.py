"""The demo on GPUs in float16, compared with the CPU in float32."""

from __future__ import annotations

import numpy as np
import pytest
import transformers

from ..support.gpu import KINDS, device
from ..support.tiny_models import Runner, compiled
from ..targets.test_devices import greedy
from .test_quality import DEMO, TEXTS, divergence

# In nats; measured 1e-7. The weights' 4 bits cost 0.09.
MOST_DIVERGENCE = 1e-6
END = 1  # the token <|end|>


def _answers(folder, prompts):
    """The text up to its end token; later tokens are untrained, so logits have ties."""
    return [
        tokens[: tokens.index(END) + 1] if END in tokens else tokens
        for tokens in greedy(folder, prompts)
    ]


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_the_demo_in_float16(kind):
    device(kind)
    here = compiled(DEMO, "q4f16_1", activations="float")
    there = compiled(DEMO, "q4f16_1", kind, kv_dtype="auto")
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    prompts = [tokenizer(text).input_ids for text in TEXTS]
    outputs, outputs_there = (_answers(folder, prompts) for folder in (here, there))
    assert outputs_there == outputs
    assert all(len(tokens) > 16 for tokens in outputs[:2])  # so there is much to compare
    first, second = (
        prompt + tokens for prompt, tokens in zip(prompts[:2], outputs[:2], strict=True)
    )
    exact = Runner(here).step({0: first, 1: second})
    prefill = Runner(there, device=kind).step({0: first, 1: second})
    for i in exact:
        assert 0 < divergence(exact[i], prefill[i]) < MOST_DIVERGENCE
    run = Runner(there, device=kind)
    parts = [run.step({1: [9, 9, 9], 0: first[:20]})[0]]
    parts += [run.step({0: [token], 1: [7]})[0] for token in first[20:26]]
    parts += [run.step({0: first[26:]})[0]]
    assert np.array_equal(np.concatenate(parts), prefill[0])
