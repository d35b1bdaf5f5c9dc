"""The core in WebAssembly with other threads, in Node; in a page: web/test/page/package.test.ts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.runtime.core.interface import SamplingParams

from .conftest import FEW, LIMITS

pytestmark = [pytest.mark.cpu, pytest.mark.nightly]
HERE = Path(__file__).parent
COUNTS, LOADS = (1, 2, 4), 20


@pytest.fixture(scope="module")
def report(core_js, given):
    """What threads.mjs says of the demo model."""
    folder = ensure_artifact("demo", target="wasm", limits=LIMITS)
    done = subprocess.run(
        ["node", str(HERE / "threads.mjs"), str(core_js / "core.js"), str(folder)],
        input=json.dumps({**given, "counts": COUNTS, "loads": LOADS}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tokens_do_not_depend_on_threads(report, native, prompts):
    greedy = SamplingParams(temperature=0, max_tokens=FEW)
    expected = native([(prompt, greedy) for prompt in prompts])
    for count, row in zip(COUNTS, report["counts"], strict=True):
        assert row == {"threads": count, "shared": count > 1, "tokens": expected}


def test_where_none_can_wait_or_share_there_is_one(report):
    assert [report[why] for why in ("noWaiting", "notIsolated", "noRoom")] == [1, 1, 1]
    assert sorted(report["refused"]) == ["0", "1.5", "1000"]
    assert report["refused"]["0"] == (
        "CoreError invalid_argument: threads is 0; it takes a whole number from 1 to 64"
    )


def test_what_fails_in_a_thread_ends_the_core_with_words(report):
    first, *later = report["died"]
    assert first.startswith("CoreError internal: the instance failed: RuntimeError: in a thread: ")
    assert "RuntimeError: table index is out of bounds" in first
    assert later == [first, first]


def test_threads_end_with_their_core(report):
    assert report["during"] >= report["before"] + 2
    assert report["after"] == report["failed"] == report["before"]
