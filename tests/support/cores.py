"""Greedy tokens of an engine core."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wherry.artifact.manifest import read_manifest
from wherry.runtime.core.interface import Finish, SamplingParams
from wherry.runtime.core.library import open_core, open_runtime
from wherry.runtime.core.native import NativeCore
from wherry.runtime.load.loading import device_of


@contextmanager
def opened(folder: Path, **config: Any):
    """Make a core of a compiled model on the device it is for, with two threads; start it later."""
    manifest = read_manifest(folder)
    where = device_of(manifest)
    open_runtime(where.partition(":")[0])
    core = NativeCore(open_core(), folder / manifest.library, folder, where, {"threads": 2}, config)
    try:
        yield core
    finally:
        core.close()


@contextmanager
def started(folder: Path, **config: Any):
    """Start a core as `opened` returns it."""
    with opened(folder, **config) as core:
        core.start()
        yield core


def greedy(
    core: NativeCore, prompts: Iterable[list[int]], tokens: int, *, start: bool = False
) -> list[list[int]]:
    """Return `tokens` greedy tokens of each prompt, as `sampled` does."""
    return sampled(core, prompts, SamplingParams(max_tokens=tokens, temperature=0), start=start)


def sampled(
    core: NativeCore, prompts: Iterable[list[int]], params: SamplingParams, *, start: bool = False
) -> list[list[int]]:
    """Return the tokens of each prompt, all in one batch; no request ends early.

    `start` starts a core that waits, so that its first step finds all prompts.
    """
    prompts = list(prompts)
    for i, prompt in enumerate(prompts):
        core.add(i, prompt, params)
    if start:
        core.start()
    outputs: list[list[int]] = [[] for _ in prompts]
    left = len(prompts)
    while left:
        events = core.wait_events(120_000)
        assert events, "no event for two minutes"
        for event in events:
            assert event.finish in (Finish.RUNNING, Finish.LENGTH), event
            outputs[event.id].append(event.token)
            left -= event.finish != Finish.RUNNING
    return outputs
