"""A model of the shapes of Llama 3.2 1B, loaded as an app does under a phone's limit of memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.word_models import readable_folder

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import Limits, ensure_artifact

from ..support.memory_limit import limited
from .app import App

pytestmark = [pytest.mark.nightly, pytest.mark.cpu]
LIMIT = 1_200_000_000  # bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights of 1.24 billion parameters, as `wherry package` compiles them for an app.

    The environment variable WHERRY_1B names a compiled folder, which saves some minutes.
    """
    if kept := os.environ.get("WHERRY_1B"):
        return Path(kept)
    model = readable_folder(tmp_path_factory.mktemp("1b"), "llama-3.2-1b")
    limits = Limits(max_batch=4, context=4096)
    return Path(ensure_artifact(str(model), target="cpu", quant="q4f16_1", limits=limits))


@pytest.mark.parametrize("pack", [True, False])
def test_a_billion_parameters_in_1200_megabytes(folder: Path, tmp_path: Path, pack: bool) -> None:
    """With a folder for packed weights (two loads: the second maps them), and without one."""
    memory = read_manifest(folder).memory
    free = LIMIT - memory["weights"] - memory["workspace"]
    options = {"kv_memory": free // 2}  # as Kotlin's and Swift's plans bound it
    if pack:
        options["pack_dir"] = str(tmp_path)
    for _ in range(2 if pack else 1):
        with limited(LIMIT) as group:
            app = App(folder, prefix=group.prefix, **options)
            messages = [{"role": "user", "content": "once upon a time " * 200}]
            answer = app.ask(messages=messages, max_tokens=4, temperature=0, ignore_eos=True)
            assert answer["usage"]["completion_tokens"] == 4, answer
            own = group.anonymous()
            app.close()
            assert group.killed() == 0
            print(f"{own / 1e6:.0f} MB of the process's own")
            assert own < LIMIT - (memory["weights"] if pack else 0)
