"""Blocks of multi-token prediction and EAGLE-3 heads: their logits, and the engine with them."""

from __future__ import annotations

import string

import numpy as np
import pytest
import torch

from wherry.errors import ModelError, UsageError
from wherry.runtime.core.interface import Finish, SamplingParams
from wherry.runtime.core.library import open_core
from wherry.runtime.grammar.compiler import find_llguidance
from wherry.runtime.grammar.native import Vocabulary
from wherry.runtime.load.loading import resolve

from ..support.cores import greedy, opened, sampled, started
from ..support.eagle3 import HEADED, WithHead
from ..support.mtp import BLOCKS, WithBlock
from ..support.tiny_models import Runner, compiled, save
from .families import CASES

pytestmark = pytest.mark.cpu
TOLERANCE = 2e-4  # of a logit, float32
TOKENS = 24
PRINTABLE = range(32, 127)
PROMPTS = [[5, 9, 33, 7, 250], list(range(40, 73)), [8]]
DEFAULT = ("qwen3_5_text", "mimo", "llama with a head")
FAMILIES = [
    name if name in DEFAULT else pytest.param(name, marks=pytest.mark.nightly)
    for name in (*BLOCKS, *HEADED)
]


@pytest.fixture(scope="module", params=FAMILIES)
def case(request, tmp_path_factory):
    """(a model with a block or a head in torch, its checkpoint, its compiled folder)."""
    folder, name = tmp_path_factory.mktemp(request.param), request.param
    own = CASES[name].config if name in CASES else {}
    model = WithHead(HEADED[name]) if name in HEADED else WithBlock(name, own)
    model.save(folder)
    return model, folder, model.compiled(folder)


OPTIONS = {"max_batch": 4, "context": 256, "prefill_chunk": 32}


def engine(folder, **options):
    return started(folder, **(OPTIONS | options))


def close(got: np.ndarray, expected: torch.Tensor) -> None:
    assert expected.abs().max() > 0.5  # a comparison of zeros proves nothing
    assert np.abs(got - expected.numpy()).max() <= TOLERANCE


@pytest.mark.by_day("mimo")
def test_logits_are_those_of_torch(case):
    model, _, folder = case
    prompt = np.random.default_rng(0).integers(3, 300, 40).tolist()
    drafted = [17, 33, 99]
    # The block reads the model's hidden states, then what it has kept itself.
    hidden, expected = model.hidden(prompt), []
    for i in range(len(drafted)):
        text = prompt + drafted[: i + 1]
        logits, kept = model.drafts(text, torch.cat([hidden, hidden[:1]]))
        hidden = torch.cat([hidden, kept[-1:]])
        expected.append(logits[-1])
    for chunks in ((40,), (5, 16, 18, 1)):  # prefill, and the same in chunks
        run, done = Runner(folder), 0
        for size in chunks:
            run.step({1: [7], 0: prompt[done : done + size]})
            done += size
        for token, logits in zip(drafted, expected, strict=True):
            close(run.step({0: [token]}, "draft")[0][0], logits)
    # Verified draft tokens get what the model keeps of them, in place of what the block has kept.
    run.sequences[0].length = len(prompt)
    run.step({0: drafted[:2]})
    text = prompt + drafted
    logits, _ = model.drafts(text, model.hidden(text))
    close(run.step({0: [drafted[2]]}, "draft")[0][0], logits[-1])


@pytest.mark.nightly
def test_the_model_has_the_same_bits_without_the_block(case):
    _, checkpoint, folder = case
    plain = compiled(checkpoint)
    assert "draft" not in Runner(plain).metadata["entries"]
    for prompt in PROMPTS:
        with_block = Runner(folder).step({0: prompt})[0]
        assert np.array_equal(with_block, Runner(plain).step({0: prompt})[0])


@pytest.mark.by_day("llama", "qwen3_5_text")
def test_tokens_stay_the_same(case):
    _, _, folder = case
    # Eight pages, of which four short prompts leave four, and twelve are needed at the end.
    short = [list(range(first, first + 15)) for first in (20, 60, 100, 140)]
    many = [list(range(150, 250)), *short]
    with engine(folder, max_drafts=0) as core:
        expected = greedy(core, PROMPTS, TOKENS)
        expected_many = greedy(core, many, TOKENS)
        assert core.stats().drafted_tokens == 0
    chat = [*PROMPTS[1], *expected[1], 17, 4, 99]
    with engine(folder, max_drafts=0) as core:
        expected_chat = greedy(core, [chat], TOKENS)
    with engine(folder) as core:  # drafts by default
        assert drafted(core, PROMPTS) == expected
        before = core.stats()
        assert before.drafted_tokens > before.accepted_tokens  # a random block errs nearly always
        assert drafted(core, [chat]) == expected_chat
        assert core.stats().prefill_tokens - before.prefill_tokens < len(chat)  # cached tokens
        assert drafted(core, [chat] * 3) == expected_chat * 3
    with opened(folder, **OPTIONS, kv_tokens=128) as core:
        assert drafted(core, many, start=True) == expected_many
        assert core.stats().preemptions > 0


def test_tokens_stay_the_same_in_any_company(case):
    """Greedy and sampled requests, free ones and one with a grammar, in one batch."""
    _, _, folder = case
    with engine(folder, max_drafts=0) as core:
        expected = company(core)
    with engine(folder) as core:
        assert company(core) == expected
        assert core.stats().drafted_tokens > 0
    assert all(chr(token) in string.digits + " " for token in expected[3][:-1])


def company(core):
    """Tokens of four requests that run together, with draft tokens if the core drafts any."""
    words = [chr(i).encode() if i in PRINTABLE else b"" for i in range(320)]
    vocabulary = Vocabulary(open_core(), find_llguidance(), words)
    numbers = vocabulary.compile("regex", "([0-9]{1,3} ){9}[0-9]")
    each = (
        SamplingParams(max_tokens=TOKENS, temperature=0),
        SamplingParams(max_tokens=TOKENS, temperature=0.7, top_p=0.9, seed=11),
        SamplingParams(max_tokens=TOKENS, temperature=1, repetition_penalty=1.2, seed=12),
        SamplingParams(max_tokens=60, temperature=1, seed=13, grammar=numbers, stop_ids=(2,)),
    )
    for i, params in enumerate(each):
        core.add(i, PROMPTS[i % len(PROMPTS)], params)
    outputs, left = [[] for _ in each], len(each)
    while left:
        for event in core.wait_events(120_000):
            assert event.finish in (Finish.RUNNING, Finish.LENGTH, Finish.STOP), event
            outputs[event.id].append(event.token)
            left -= event.finish != Finish.RUNNING
    return outputs


def drafted(core, prompts, *, start=False):
    """Greedy tokens as `greedy` returns them, of requests that ask for draft tokens."""
    params = SamplingParams(max_tokens=TOKENS, temperature=0, max_drafts=3)
    return sampled(core, prompts, params, start=start)


def agreeing(model: WithBlock, noise: float = 0.0) -> None:
    """Let the next token depend on the last one alone, and the block know how, but for noise."""
    d = model.linear.shape[0]
    with torch.no_grad():
        for layer in (*model.inner.layers, *model.block):
            for name, p in layer.named_parameters():
                if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
                    p.zero_()
        model.linear = torch.cat([torch.eye(d), torch.zeros(d, d)], 1)
        model.linear += noise * torch.randn(d, 2 * d)
        model.norms["embedding"] = torch.full((d,), 1.0 - model.offset)
        model.norms["norm"] = model.inner.norm.weight.clone()


@pytest.mark.nightly
def test_drafts_that_agree_are_accepted(tmp_path):
    model = WithBlock("qwen3_5_text", CASES["qwen3_5_text"].config)
    agreeing(model)
    model.save(tmp_path)
    with engine(compiled(tmp_path, mtp=True)) as core:
        # Sampling, with the request's own generator: greedy tokens would soon repeat.
        params = SamplingParams(max_tokens=60, temperature=1, seed=3, max_drafts=0)
        expected = sampled(core, [[5, 9]], params)
        params = SamplingParams(max_tokens=60, temperature=1, seed=3, max_drafts=3)
        assert sampled(core, [[5, 9]], params) == expected
        stats = core.stats()
        assert stats.accepted_tokens == stats.drafted_tokens > 0


def test_without_a_block(tmp_path):
    with pytest.raises(UsageError, match=r"llama has none .* Those of deepseek_v3, .*--draft"):
        save(tmp_path / "llama", "llama")
        compiled(tmp_path / "llama", mtp=True)
    case = CASES["qwen3_5_text"]
    save(tmp_path / "bare", case.model_type, **case.config)
    with pytest.raises(UsageError, match="mtp_num_hidden_layers: 0"):
        compiled(tmp_path / "bare", mtp=True)
    save(tmp_path / "bare", case.model_type, **case.config, mtp_num_hidden_layers=1)
    with pytest.raises(ModelError, match=r"mtp\.fc\.weight.*\n(.*\n)*.*leave out --mtp"):
        compiled(tmp_path / "bare", mtp=True)


@pytest.mark.nightly
def test_a_compiled_folder_without_a_block(tmp_path):
    save(tmp_path, "llama")
    with pytest.raises(UsageError, match="without a block of multi-token prediction"):
        resolve(compiled(tmp_path), mtp=True)
