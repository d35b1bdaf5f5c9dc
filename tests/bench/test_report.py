"""Numbers, table and picture of outcomes whose times are known."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from wherry.bench import picture, report, table
from wherry.bench.outcome import Outcome


def outcome(due, pieces, ended, output, **more):
    result = Outcome(due=due, sent=due, ended=ended, pieces=pieces, has_usage=True, **more)
    result.output_tokens = output
    return result


@pytest.fixture
def outcomes():
    return [
        outcome(10.0, [10.1, 10.2, 10.4], 10.5, 7, prompt_tokens=100, cached_tokens=20),
        outcome(10.2, [10.5], 11.0, 1, prompt_tokens=50, draft_tokens=6, accepted_tokens=4),
        outcome(10.3, [], 10.4, 0, error="503: busy"),
        outcome(10.3, [], 12.0, 0, error="503: busy"),
    ]


def test_summary(outcomes):
    summary = report.summary(outcomes)
    assert (summary["requests"], summary["failed"], summary["errors"]) == (4, 2, {"503: busy": 2})
    assert summary["seconds"] == 2.0 and summary["most_at_once"] == 4
    assert summary["tokens"] == {
        **{"prompt": 150, "cached": 20, "output": 8},
        **{"draft": 6, "draft_accepted": 4},
    }
    assert summary["per_second"] == {"requests": 1.0, "prompt_tokens": 75.0, "output_tokens": 4.0}
    times = summary["milliseconds"]
    assert times["ttft"]["p50"] == pytest.approx(200)  # of 100 and 300
    assert times["tpot"]["mean"] == pytest.approx(50)  # 300 ms for the six after the first
    assert times["itl"]["max"] == pytest.approx(200)
    assert times["e2e"]["p99"] == pytest.approx(500 + 0.99 * 300)
    json.dumps(summary)


def test_a_late_client_waits_in_the_numbers():
    late = outcome(10.0, [10.5], 10.6, 1)
    late.sent = 10.4
    summary = report.summary([late])
    assert summary["milliseconds"]["ttft"]["p50"] == pytest.approx(500)
    assert summary["client_late_milliseconds"]["p99"] == pytest.approx(400)
    assert any("too slow for this load" in line for line in table.lines("x", summary))


def test_table_has_columns_and_what_went_wrong(outcomes):
    lines = list(table.lines("boat at http://a: 4 under way", report.summary(outcomes)))
    assert lines[0] == "boat at http://a: 4 under way"
    assert "4 requests, 2 failed, at most 4 at once, in 2.0 s: 1.00 per second" in lines
    assert "read                              150       75.0       75.0" in lines
    assert "draft tokens                        6        67% accepted" in lines
    assert "written per step                            2.00" in lines
    assert "2 failed: 503: busy" in lines
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)
    widths = {len(line) for line in lines if line.startswith(("milliseconds", "first", "whole"))}
    assert len(widths) == 1


def test_nothing_but_failures_is_no_error(outcomes):
    failed = outcomes[2:]
    summary = report.summary(failed)
    assert summary["milliseconds"]["ttft"] is None
    assert list(table.lines("x", summary))
    ET.fromstring(picture.svg("x", failed))


def test_picture_is_svg_with_everything_inside(outcomes):
    root = ET.fromstring(picture.svg("a < b", outcomes * 400))
    width, height = float(root.get("width")), float(root.get("height"))
    name = "{http://www.w3.org/2000/svg}"
    assert any(t.text == "a < b" for t in root.iter(f"{name}text"))
    assert len(list(root.iter(f"{name}g"))) == 6
    for mark in root.iter(f"{name}circle"):
        assert 0 < float(mark.get("cx")) < width and 0 < float(mark.get("cy")) < height
    assert len(picture.svg("x", outcomes * 400)) < 200_000  # however many requests there were


@pytest.mark.parametrize("high", [0.0007, 0.3, 1, 7, 99, 100, 12345])
def test_ticks_are_round_and_reach_the_end(high):
    ticks = picture._ticks(0, high)
    assert ticks[0] == 0 and ticks[-1] >= high * (1 - 1e-6) and len(ticks) <= 7
    assert float(f"{ticks[1]:.0e}") == pytest.approx(ticks[1])
