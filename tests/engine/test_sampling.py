"""The core's sampling against NumPy: the kept tokens and the token drawn, row by row."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .sampling_oracle import HEAD, Oracle, Params

pytestmark = pytest.mark.cpu
PROGRAM = Path(__file__).parents[2] / "build" / "dev" / "wherry_sample_rows"
MARGIN = 1e-5  # decisions closer than this may go either way: float32 sums on the core's side


@dataclass
class Case:
    """Rows of one request."""

    logits: np.ndarray  # [rows, vocab] float32
    params: Params
    prompt: list[int] = field(default_factory=lambda: [0])
    output: list[int] = field(default_factory=list)
    mask: np.ndarray | None = None  # [vocab] bool

    def text(self) -> str:
        words: list[Any] = ["rows", len(self.logits), "logits", self.logits.size]
        words += [format(v, ".9g") for v in self.logits.ravel()]
        lists = {"prompt": self.prompt, "output": self.output}
        for f in fields(Params):
            value = getattr(self.params, f.name)
            if f.name == "bias":
                lists["bias_ids"] = list(value)
                words += ["bias_values", len(value), *value.values()]
            elif f.name == "bad_words":
                for word in value:
                    words += ["bad_word", len(word), *word]
            elif isinstance(value, list):
                lists[f.name] = value
            else:
                words += [f.name, value]
        for name, values in lists.items():
            words += [name, len(values), *values]
        if self.mask is not None:
            padded = np.zeros(-(-len(self.mask) // 32) * 32, np.uint8)
            padded[: len(self.mask)] = self.mask
            bits = np.packbits(padded, bitorder="little").view("<u4")
            words += ["mask", len(bits), *bits]
        return " ".join(map(str, [*words, "run"]))


def check(cases: list[Case], *, decided: float = 0.97) -> int:
    """Compare; at least the share `decided` of the rows must be beyond doubt. Returns their number.

    After a row in doubt the rest of its request is left out: the histories may differ.
    """
    assert PROGRAM.is_file(), "build the core: cmake --preset dev && cmake --build --preset dev"
    text = "\n".join(case.text() for case in cases)
    done = subprocess.run([PROGRAM], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = iter(done.stdout.splitlines())
    rows = compared = 0
    for case in cases:
        oracle = Oracle(case.params, case.prompt, case.output)
        clear = True
        for logits in case.logits:
            rows += 1
            token, _, mu, begin, end, *ids = next(lines).split()
            if not clear:
                continue
            drawn = oracle.sample(logits, case.mask)
            if drawn.margin < MARGIN:
                clear = False
                continue
            compared += 1
            assert (drawn.begin, drawn.end) == (int(begin), int(end)), case.params
            if ids:
                assert drawn.ids == [int(i) for i in ids], case.params
            assert drawn.token == int(token), case.params
            assert oracle.mu == pytest.approx(float(mu), rel=1e-5, abs=1e-5)
    assert next(lines, None) is None
    assert compared >= decided * rows, f"{compared} of {rows} rows were beyond doubt"
    return compared


def random_rows(rng: np.random.Generator, rows: int, vocab: int) -> np.ndarray:
    """Peaked and flat ones, with equal logits and some that the model itself makes impossible."""
    x = rng.normal(size=(rows, vocab)) * rng.choice([0.3, 1.0, 3.0, 6.0])
    if rng.random() < 0.3:
        x = np.round(x * 2) / 2
    if rng.random() < 0.2:
        x[:, rng.integers(vocab, size=vocab // 3)] = -np.inf
        x[:, 0] = 0.25
    return x.astype(np.float32)


def stage(**params: Any) -> list[Case]:
    """60 random rows of several vocabularies for one setting."""
    rng = np.random.default_rng(7)
    return [
        Case(random_rows(rng, 1, vocab), Params(seed=int(rng.integers(2**62)), **params))
        for vocab in [5, 64, 65, 300, 3000] * 12
    ]


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 0.0},
        {"temperature": 0.6},
        {"temperature": 1.7},
        {"temperature": 1e-42, "top_p": 0.9},
        {"temperature": 0.8, "dynamic_range": 0.7, "dynamic_exponent": 1.3},
        {"temperature": 0.5, "dynamic_range": 0.5},
        {"top_n_sigma": 1.0},
        {"top_n_sigma": 2.5, "temperature": 3.0},
        {"top_k": 1},
        {"top_k": 40},
        {"top_k": 200, "temperature": 2.0},
        {"typical_p": 0.2},
        {"typical_p": 0.9},
        {"typical_p": 0.95, "top_k": 50},
        {"top_p": 0.3},
        {"top_p": 0.95},
        {"top_p": 0.9, "top_k": 20, "temperature": 0.7},
        {"min_p": 0.05},
        {"min_p": 0.4, "temperature": 1.5},
        {"xtc_probability": 1.0},
        {"xtc_probability": 0.5, "xtc_threshold": 0.02},
        {"xtc_probability": 1.0, "xtc_threshold": 0.05, "min_p": 0.02},
        {"mirostat_tau": 5.0},
        {"mirostat_tau": 1.0, "temperature": 0.7},
    ],
    ids=lambda params: "-".join(f"{k}={v}" for k, v in params.items()),
)
def test_stage(params):
    # Rounded rows have many equal logits: what is typical is then often a tie.
    check(stage(**params), decided=0.7 if "typical_p" in params else 0.95)


def test_mirostat_follows_its_target_over_many_tokens():
    rng = np.random.default_rng(3)
    cases = [
        Case(
            (rng.normal(size=(25, 100)) * 2).astype(np.float32),
            Params(mirostat_tau=tau, mirostat_eta=0.2, seed=seed),
        )
        for seed, tau in enumerate([0.5, 2.0, 3.0, 5.0] * 3)
    ]
    check(cases, decided=0.8)


def history(rng: np.random.Generator, vocab: int, n: int) -> list[int]:
    """Tokens with repetitions of several lengths."""
    tokens = [int(t) for t in rng.integers(vocab, size=n)]
    for _ in range(n // 6):
        length = int(rng.integers(2, 8))
        start, to = rng.integers(n - length, size=2)
        tokens[to : to + length] = tokens[start : start + length]
    return tokens


@pytest.mark.parametrize("breakers", [[], [1, 2]])
@pytest.mark.parametrize("allowed", [1, 2, 3, 11])
def test_dry(allowed, breakers):
    rng = np.random.default_rng(allowed)
    cases = []
    for i in range(60):
        vocab = int(rng.choice([6, 30]))
        prompt, output = history(rng, vocab, 60), history(rng, vocab, 30)
        if i % 2:  # a long one, at the end
            output += prompt[5:45]
        params = Params(
            temperature=0.0 if i % 3 else 1.0,
            dry_multiplier=0.8,
            dry_base=1.4,
            dry_allowed_length=allowed,
            dry_range=int(rng.choice([0, 7, 40])),
            dry_breakers=breakers,
            seed=i,
        )
        cases.append(Case(random_rows(rng, 6, vocab), params, prompt, output))
    check(cases)


def test_a_repetition_costs_no_more_than_its_limit():
    rng = np.random.default_rng(2)
    text = [int(t) for t in rng.integers(50, size=200)]
    params = Params(temperature=0.0, dry_multiplier=0.01, dry_base=1.05, dry_allowed_length=3)
    check([Case(random_rows(rng, 8, 50), params, text, text[:150])])


def test_bad_words():
    rng = np.random.default_rng(5)
    cases = []
    for seed in range(60):
        vocab = 8
        words = [[int(t) for t in rng.integers(vocab, size=rng.integers(2, 5))] for _ in range(9)]
        words += [[int(rng.integers(vocab))], [3] * 400]
        tokens = history(rng, vocab, 20)
        prompt = int(rng.integers(1, 20))
        params = Params(temperature=float(seed % 2), bad_words=words, seed=seed)
        cases.append(Case(random_rows(rng, 10, vocab), params, tokens[:prompt], tokens[prompt:]))
    # A row without a token that may come is an error; leave those cases out.
    check([case for case in cases if _always_possible(case)], decided=0.95)


def _always_possible(case: Case) -> bool:
    forbidden = {word[-1] for word in case.params.bad_words}
    return any(np.isfinite(case.logits[:, i]).all() for i in range(8) if i not in forbidden)


def test_everything_at_once():
    """Random settings of all stages, over several tokens each."""
    rng = np.random.default_rng(11)

    def some(chance: float, value: Any, otherwise: Any) -> Any:
        return value if rng.random() < chance else otherwise

    cases = []
    for _ in range(400):
        vocab = int(rng.choice([40, 300, 1500]))
        ids = [int(i) for i in rng.choice(vocab, size=6, replace=False)]
        params = Params(
            min_tokens=int(rng.integers(4)),
            stop_ids=ids[:2],
            temperature=float(rng.choice([0.0, 0.5, 1.0, 1.5])),
            dynamic_range=some(0.2, 0.4, 0.0),
            top_p=some(0.4, float(rng.uniform(0.2, 0.99)), 1.0),
            top_k=some(0.3, int(rng.integers(1, 100)), 0),
            min_p=some(0.3, float(rng.uniform(0.001, 0.3)), 0.0),
            typical_p=some(0.2, float(rng.uniform(0.2, 0.99)), 1.0),
            top_n_sigma=some(0.2, float(rng.uniform(0.5, 3)), 0.0),
            xtc_probability=some(0.3, 0.6, 0.0),
            xtc_threshold=float(rng.uniform(0.01, 0.3)),
            mirostat_tau=some(0.1, 3.0, 0.0),
            repetition_penalty=some(0.4, float(rng.uniform(0.8, 1.5)), 1.0),
            presence_penalty=some(0.3, float(rng.uniform(-1, 1)), 0.0),
            frequency_penalty=some(0.3, float(rng.uniform(-1, 1)), 0.0),
            dry_multiplier=some(0.3, 0.8, 0.0),
            seed=int(rng.integers(2**62)),
            bias={ids[2]: -np.inf, ids[3]: 2.5, ids[4]: -1.25} if rng.random() < 0.4 else {},
            bad_words=some(0.3, [[ids[5]], [ids[3], ids[4]]], []),
        )
        mask = rng.random(vocab) < rng.choice([0.1, 0.9]) if rng.random() < 0.3 else None
        if mask is not None:
            mask[[i for i in range(10) if i not in ids]] = True
        logits = random_rows(rng, 5, vocab)
        logits[:, :10] = rng.normal(size=(5, 10))  # something is always possible
        tokens = history(rng, min(vocab, 50), 40)
        cases.append(Case(logits, params, tokens[:20], tokens[20:], mask))
    check(cases, decided=0.85)


def test_stop_ids_before_min_tokens_only_where_nothing_else_is_possible():
    logits = np.float32([[1, 5, 2, 0]] * 3)
    params = Params(temperature=0.0, min_tokens=2, stop_ids=[1])
    assert check([Case(logits, params)]) == 3
    only_stop = np.array([False, True, False, False])
    assert check([Case(logits, params, mask=only_stop)]) == 3
    oracle = Oracle(params, [0], [])
    assert [oracle.sample(row).token for row in logits] == [2, 2, 1]


def test_the_tail_is_drawn_by_id():
    """Flat rows: most draws fall beyond the head."""
    rng = np.random.default_rng(8)
    for extra in ({}, {"xtc_probability": 1.0, "xtc_threshold": 0.0005}):
        logits = (rng.normal(size=(200, 2500)) * 0.4).astype(np.float32)
        cases = [
            Case(logits[i : i + 1], Params(seed=i, temperature=1.2, **extra)) for i in range(200)
        ]
        assert check(cases, decided=0.9) > 180
        tail = sum(
            Oracle(c.params, [0], []).sample(c.logits[0]).token
            not in np.argsort(-c.logits[0])[:HEAD]
            for c in cases
        )
        assert tail > 100
