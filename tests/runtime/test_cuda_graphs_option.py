"""CUDA graphs as people meet them: the option, and what is said when they are given up."""

from __future__ import annotations

import logging
import time
from itertools import chain, repeat

import click
from click.testing import CliRunner

from wherry.cli import options
from wherry.runtime.core.interface import CoreStats
from wherry.runtime.core.pulse import Pulse, Snapshot, as_json

WORDS = "cuGraphLaunch failed with CUDA_ERROR_OUT_OF_MEMORY (2)"


def test_the_reason_is_logged_once(caplog):
    """Whatever the counters are read for, and as often."""
    given_up = CoreStats(graph_steps=7, graphs_given_up=WORDS, chains_given_up="why")
    read = chain([CoreStats(graph_steps=7)], repeat(given_up))
    pulse = Pulse(lambda: next(read), lambda: 1)
    with caplog.at_level(logging.WARNING):
        while pulse.looks < 3:
            pulse.stir()
            time.sleep(0.001)
    pulse.close()
    messages = [record.message for record in caplog.records]
    assert [WORDS in m for m in messages] == [True, False]
    assert messages[1].endswith("why")
    stats = as_json(
        Snapshot(
            stats=pulse.stats, age_seconds=0, active=1, limit=None, stalled_seconds=0, failed=False
        )
    )
    assert (stats["graph_steps"], stats["graphs_given_up"]) == (7, WORDS)
    assert stats["chains_given_up"] == "why"


def test_the_option_is_a_load_option():
    """Nothing is said unless it is typed."""
    seen: list[object] = []

    @click.command()
    @options.load
    def command(**typed: object) -> None:
        seen.append(options.split(typed)[0].get("cuda_graphs"))

    for arguments in ([], ["--cuda-graphs", "off"], ["--cuda-graphs", "on"]):
        assert CliRunner().invoke(command, arguments).exit_code == 0
    assert seen == [None, False, True]
