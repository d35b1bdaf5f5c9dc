"""Every encoder-decoder against transformers: logits, and greedy tokens of the core."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
import torch

from wherry.errors import UsageError
from wherry.quant.scheme import find
from wherry.runtime.core.interface import Finish, SamplingParams

from ..support import gpu
from ..support.cores import opened, started
from ..support.tiny_models import Runner, compiled, round_weights
from ..support.web import require_core
from .encoder_decoders import CASES, save

pytestmark = pytest.mark.cpu
TOLERANCE = 2e-4  # of a logit, float32
SOURCES = (150, 37, 16, 1)  # tokens: over the reach of biases, and several pages
OUTPUTS = (70, 141, 6, 33)
NAMES = [
    pytest.param(name, marks=pytest.mark.nightly if case.nightly else ())
    for name, case in CASES.items()
]
TOKENS = 64
FOUR_BITS = ("cpu", "opencl", "vulkan", "webgpu")  # targets of the nightly test of 4 bits
OPTIONS = {"max_batch": 4, "context": 256, "prefill_chunk": 256}


def texts(vocab, lengths):
    rng = np.random.default_rng(3)
    return [rng.integers(2, vocab, n).tolist() for n in lengths]


def logits(model, source, output):
    with torch.no_grad():
        result = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([output]))
    return result.logits[0].numpy()


def close(got, model, source, output, tolerance=TOLERANCE):
    """Compare with transformers, whose own float32 is no exact reference.

    T5's scores have no scale, so that some configurations amplify the last bits.
    """
    expected, exact = (logits(m, source, output) for m in (model, deepcopy(model).double()))
    assert got.shape == expected.shape
    assert np.abs(expected).max() > 0.5  # a comparison of zeros proves nothing
    assert np.abs(got - exact).max() <= max(tolerance, 2 * np.abs(expected - exact).max())


@pytest.fixture(scope="module", params=NAMES)
def case(request, tmp_path_factory):
    """(a compiled folder, sources, outputs, transformers' model)."""
    folder = tmp_path_factory.mktemp(request.param)
    model = save(folder, CASES[request.param])
    vocab = model.config.vocab_size
    start = model.config.decoder_start_token_id
    outputs = [[start, *text] for text in texts(vocab, OUTPUTS)]
    return compiled(folder), texts(vocab, SOURCES), outputs, model


class TestAgainstTransformers:
    @pytest.mark.by_day("bart")
    def test_alone_and_in_chunks(self, case):
        folder, sources, outputs, model = case
        for source, output in zip(sources, outputs, strict=True):
            run = Runner(folder)
            run.step({0: source}, "encode")
            at_once = run.step({0: output})[0]
            close(at_once, model, source, output)
            cut = Runner(folder)
            cut.step({0: source}, "encode")
            n = len(output)
            parts = [output[a:b] for a, b in pairwise(sorted({0, 1, 2, min(20, n), n}))]
            assert np.array_equal(np.concatenate([cut.step({0: p})[0] for p in parts]), at_once)

    @pytest.mark.by_day("t5", "bart")
    def test_the_same_bits_in_any_batch(self, case):
        folder, sources, outputs, _ = case
        alone = []
        for source, output in zip(sources, outputs, strict=True):
            run = Runner(folder)
            run.step({0: source}, "encode")
            alone.append(run.step({0: output})[0])
        run = Runner(folder)
        for some in ((2, 0), (3, 1)):
            run.step({i: sources[i] for i in some}, "encode")
        first = run.step({i: outputs[i][:5] for i in range(4)})
        rest = {i: outputs[i][5:] for i in (3, 1, 0, 2)}
        second = run.step(rest)
        for i in range(4):
            assert np.array_equal(np.concatenate([first[i], second[i]]), alone[i])


def generated(model, source, tokens=TOKENS):
    """Return transformers' greedy tokens."""
    ids = model.generate(
        torch.tensor([source]),
        max_new_tokens=tokens,
        do_sample=False,
        num_beams=1,
        eos_token_id=None,
        forced_eos_token_id=None,
        # transformers' cache has as many layers as the encoder
        use_cache=_layers(model.get_decoder()) == _layers(model.get_encoder()),
    )
    return ids[0, 1:].tolist()


def _layers(side):
    """Return the number of layers of an encoder or decoder."""
    return len(side.layers if hasattr(side, "layers") else side.block)


def greedy(core, start, sources, *, waits=False):
    """Return greedy tokens of all sources, in one batch."""
    for i, source in enumerate(sources):
        core.add(i, [start], SamplingParams(max_tokens=TOKENS, temperature=0, source=tuple(source)))
    if waits:
        core.start()
    tokens, left = [[] for _ in sources], len(sources)
    while left:
        for event in core.wait_events(120_000):
            assert event.finish in (Finish.RUNNING, Finish.LENGTH), event
            tokens[event.id].append(event.token)
            left -= event.finish != Finish.RUNNING
    return tokens


@pytest.mark.by_day("t5")
def test_tokens_are_those_of_transformers(case):
    folder, sources, outputs, model = case
    start = outputs[0][0]
    expected = [generated(model, source) for source in sources]
    assert all(len(set(tokens)) > 4 for tokens in expected[:3])
    with started(folder, **OPTIONS) as core:
        assert greedy(core, start, sources) == expected
        # Prefixes of the decoder depend on the source, so none is shared.
        assert greedy(core, start, sources[::-1]) == expected[::-1]
        assert core.stats().cached_tokens == 0
    # Pages for one source of 150 tokens and a little more: the core preempts, and encodes again.
    with opened(folder, **OPTIONS, kv_tokens=176) as core:
        assert greedy(core, start, sources, waits=True) == expected
        assert core.stats().preemptions > 0
    with started(folder, **OPTIONS, max_drafts=4) as core:  # of repetitions in the output
        assert greedy(core, start, sources) == expected
        assert core.stats().drafted_tokens > 0


def test_wrong_sources_are_refused(case):
    with started(case[0], **{**OPTIONS, "context": 100}) as core:
        for source, message in (
            ((), "the source has 0 tokens; this model reads one"),
            ((5,) * 101, "the source has 101 tokens; the context is 100"),
        ):
            with pytest.raises(UsageError, match=message):
                core.add(1, [0], SamplingParams(max_tokens=4, source=source))


def four_bits(folder, sources, outputs, target="cpu", activations="auto"):
    artifact = compiled(folder, "q4f32_1", target=target, activations=activations)
    run = Runner(artifact, device=target)
    run.step(dict(enumerate(sources)), "encode")
    first = run.step({i: output[:7] for i, output in enumerate(outputs)})
    second = run.step({i: output[7:] for i, output in enumerate(outputs) if len(output) > 7})
    return [np.concatenate([first[i], second.get(i, first[i][:0])]) for i in first]


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", FOUR_BITS)
def test_four_bits(name, kind, tmp_path):
    """The tokens of the dequantized weights; for browsers the kernels are compiled only."""
    if kind == "webgpu":
        require_core()
        save(tmp_path, CASES[name])
        assert compiled(tmp_path, "q4f32_1", target=kind).is_dir()
        return
    if kind != "cpu":
        gpu.device(kind)
    model = save(tmp_path, CASES[name])
    round_weights(model, find("q4f32_1"))
    vocab, start = model.config.vocab_size, model.config.decoder_start_token_id
    sources = texts(vocab, (60, 37, 1))
    outputs = [[start, *text] for text in texts(vocab, (40, 6, 20))]
    got = four_bits(tmp_path, sources, outputs, kind, "float")
    for logits_, source, output in zip(got, sources, outputs, strict=True):
        close(logits_, model, source, output, 1e-3)
