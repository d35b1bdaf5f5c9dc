"""What is asked: sizes by the server's counts, times of a Poisson process, traces."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import pytest

from wherry.bench import trace, workload
from wherry.bench.load import closed_loop, open_loop
from wherry.bench.measure import LoadPlan, measure
from wherry.bench.outcome import Ask
from wherry.bench.workload import Lengths, RequestShape, Sizing
from wherry.errors import UsageError


class Counting:
    """Answers at once; a word has two tokens, and the template five."""

    name = "counting"

    def __init__(self, seconds=0.0, knows_ignore_eos=True):
        self.seconds = seconds
        self.knows = knows_ignore_eos
        self.bodies = []
        self.running = self.most = 0

    async def takes(self, body):
        return self.knows or "ignore_eos" not in body

    async def ask(self, body, outcome):
        import asyncio

        self.bodies.append(body)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self.seconds)
        self.running -= 1
        words = len(body["messages"][0]["content"].split())
        outcome.pieces.append(outcome.sent)
        counts = {"prompt_tokens": 5 + 2 * words, "completion_tokens": body["max_tokens"]}
        outcome.count(counts)

    async def close(self):
        pass


@pytest.mark.parametrize(
    ("typed", "low", "high"), [("128", 128, 128), ("64-256", 64, 256), ("1-1", 1, 1)]
)
def test_lengths(typed, low, high):
    lengths = Lengths.parse(typed)
    assert (lengths.low, lengths.high) == (low, high)
    rng = random.Random(0)
    assert {lengths.draw(rng) for _ in range(2000)} == set(range(low, high + 1))


@pytest.mark.parametrize("typed", ["", "0", "-5", "9-3", "4-", "a", "1.5", "1-2-3", "²"])
def test_no_lengths(typed):
    with pytest.raises(UsageError, match="not a number of tokens"):
        Lengths.parse(typed)


async def test_prompts_have_the_requested_tokens():
    target = Counting()
    measured = await measure(
        target, LoadPlan(prompt_tokens=Lengths(64, 256), output_tokens=Lengths(9, 9), requests=50)
    )
    outcomes = measured.outcomes
    assert len(outcomes) == 50 and measured.exact
    assert all(63 <= o.prompt_tokens <= 257 for o in outcomes)
    assert len({o.prompt_tokens for o in outcomes}) > 20
    assert {b["max_tokens"] for b in target.bodies[-50:]} == {9}
    texts = [b["messages"][0]["content"] for b in target.bodies]
    assert len(set(texts)) == len(texts)  # no two are the same: a prefix cache finds nothing


class Uneven(Counting):
    """A word has a token for each two letters begun, as a small vocabulary has it."""

    def __init__(self, context=4096):
        super().__init__()
        self.context = context

    async def ask(self, body, outcome):
        said = body["messages"][0]["content"]
        tokens = sum(-(-len(word) // 2) for word in said.split())
        if tokens > self.context:
            outcome.error = "the context is too small"
            return
        await super().ask(body, outcome)
        outcome.count({"prompt_tokens": tokens, "completion_tokens": body["max_tokens"]})


@pytest.mark.parametrize("requested", [128, 512])
async def test_words_of_many_sizes_come_near_the_requested_tokens(requested):
    plan = LoadPlan(
        prompt_tokens=Lengths(requested, requested), output_tokens=Lengths(9, 9), requests=30
    )
    for seed in range(5):
        outcomes = (await measure(Uneven(), replace(plan, seed=seed))).outcomes
        lengths = [o.prompt_tokens for o in outcomes]
        assert abs(sum(lengths) / len(lengths) - requested) < requested / 40
        assert max(lengths) - min(lengths) < 25


async def test_a_small_context_is_sized_by_fewer_words():
    plan = LoadPlan(prompt_tokens=Lengths(64, 64), output_tokens=Lengths(9, 9), requests=10)
    outcomes = (await measure(Uneven(context=150), plan)).outcomes
    assert all(o.error is None and 50 <= o.prompt_tokens <= 78 for o in outcomes)
    with pytest.raises(UsageError, match="does not answer: the context is too small"):
        await workload.sizing(Uneven(context=50), RequestShape(), 0)


def test_a_prompt_has_every_word_before_it_has_one_again():
    words = workload.text(len(workload.WORDS) + 9, random.Random(1)).split()
    assert sorted(words[:-9]) == sorted(workload.WORDS) and len(set(words[-9:])) == 9


async def test_a_server_that_does_not_know_ignore_eos_is_not_sent_it():
    target = Counting(knows_ignore_eos=False)
    measured = await measure(target, LoadPlan(requests=2))
    assert not measured.exact and not any("ignore_eos" in b for b in target.bodies)


async def test_a_seed_gives_the_same_requests_and_another_others():
    async def bodies(seed):
        target = Counting()
        await measure(target, LoadPlan(requests=3, seed=seed))
        return target.bodies

    assert await bodies(1) == await bodies(1) != await bodies(2)


def test_a_poisson_process_has_its_rate_and_its_variance():
    asks = workload.at_rate(itertools.repeat(Ask(body={})), rate=20, seed=3)
    times = [a.at for a in itertools.islice(asks, 4000)]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    variance = sum((g - mean) ** 2 for g in gaps) / len(gaps)
    assert abs(mean - 1 / 20) < 0.003
    assert abs(variance**0.5 - mean) < 0.1 * mean  # as exponential gaps have it


async def test_a_closed_loop_keeps_so_many_in_flight():
    target = Counting(seconds=0.005)
    asks = workload.random_asks(RequestShape(), Sizing(), Lengths(4, 4), Lengths(1, 1), 0)
    outcomes = await closed_loop(target, asks, concurrency=4, requests=18)
    assert (len(outcomes), target.most) == (18, 4)
    timed = await closed_loop(target, asks, concurrency=2, seconds=0.05)
    assert 2 <= len(timed) <= 40


async def test_an_open_loop_waits_for_nobody_and_waiting_counts_from_the_due_time():
    target = Counting(seconds=0.2)
    asks = (Ask(body=RequestShape().body("a", 1), at=i * 0.01) for i in range(6))
    outcomes = await open_loop(target, asks)
    assert target.most == 6
    first = outcomes[0].due
    assert [round(o.due - first, 6) for o in outcomes] == [i * 0.01 for i in range(6)]
    asks = (Ask(body=RequestShape().body("a", 1), at=i * 0.05) for i in range(100))
    assert len(await open_loop(target, asks, seconds=0.12)) == 3


def written(tmp_path, *rows):
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
    return path


def test_mooncakes_lines_share_what_they_share(tmp_path):
    row = {"timestamp": 3000, "input_length": 1200, "output_length": 7, "hash_ids": [1, 2, 3]}
    other = row | {"timestamp": 2000, "hash_ids": [1, 2, 9]}
    rows = trace.read(written(tmp_path, row, other, ""))
    assert [r["at"] for r in rows] == [0.0, 1.0]  # in order, from 0
    requests = list(trace.asks(rows, RequestShape(), Sizing(2.0, 10.0), 64, speed=2.0, seed=0))
    assert [a.at for a in requests] == [0.0, 0.5]
    words = [a.body["messages"][0]["content"].split() for a in requests]
    assert [len(w) for w in words] == [595, 595]  # (1200 - 10) / 2
    assert words[0][:512] == words[1][:512] and words[0][512:] != words[1][512:]
    assert all(a.body["max_tokens"] == 7 for a in requests)


def test_our_lines(tmp_path):
    said = [{"role": "user", "content": "Hello!"}]
    rows = trace.read(
        written(
            tmp_path,
            {"at": 1, "prompt": "Why?", "max_tokens": 3},
            {"at": 1.5, "messages": said},
            {"at": 2.5, "prompt_tokens": 9},
        )
    )
    requests = list(trace.asks(rows, RequestShape(), Sizing(), 64, 1.0, 0))
    assert [a.at for a in requests] == [0, 0.5, 1.5]
    assert requests[0].body == RequestShape().body("Why?", 3)
    assert requests[1].body == {"messages": said, "max_tokens": 64}
    assert len(requests[2].body["messages"][0]["content"].split()) == 9


def test_a_trace_that_is_wrong_names_all_its_lines(tmp_path):
    path = written(
        tmp_path,
        "{",
        [1],
        {"at": 1, "prompt": "a", "messages": []},
        {"at": -1, "prompt": "a"},
        {"timestamp": 1, "input_length": 0, "output_length": 1},
        {"at": 1, "prompt": "a", "colour": "red"},
    )
    with pytest.raises(UsageError) as raised:
        trace.read(path)
    for number in range(1, 7):
        assert f"line {number}: " in str(raised.value)
    with pytest.raises(UsageError, match="cannot be read"):
        trace.read(tmp_path / "none")


def test_a_plan_has_one_kind_of_load():
    with pytest.raises(UsageError, match="--concurrency and --rate exclude each other"):
        LoadPlan(concurrency=2, rate=1.0)
