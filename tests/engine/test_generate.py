"""wherry_generate, the command line program over the C ABI: devices, and where a text ends."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from wherry.machine.plugins import find_core, find_plugin

from ..support import gpu
from ..support.tiny_models import compiled, save

PROMPT = ("3", "14", "15", "9", "26")
LENGTH = 12


@pytest.fixture(scope="module")
def generate():
    """Run it; the finished process."""
    program = find_core().with_name("wherry_generate")
    assert program.is_file(), "type: cmake --preset dev && cmake --build --preset dev"
    packages = [Path(importlib.util.find_spec(p).origin).parent for p in ("tvm", "tvm_ffi")]
    path = os.pathsep.join(str(p / "lib") for p in packages)
    environment = {**os.environ, "LD_LIBRARY_PATH": path}

    def run(*arguments, **changes):
        command = [str(a) for a in (program, *arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=300, env={**environment, **changes}
        )

    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    save(folder, "llama")
    return folder


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """A compiled folder, to be changed."""
    return Path(shutil.copytree(compiled(model), tmp_path_factory.mktemp("cpu") / "model"))


def tokens(done):
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def generated(generate, folder, *options):
    length = ("--max-tokens", LENGTH)
    return tokens(generate(*options, *length, folder / "model.so", folder, *PROMPT))


@pytest.mark.cpu
def test_a_stop_id_ends_the_text(generate, folder):
    every = generated(generate, folder, "--stop", "none")
    assert len(every) == LENGTH
    third = every[3]
    until = every[: every.index(third)]
    assert generated(generate, folder, "--stop", f"60,{third}") == until
    for name, config in (
        ("generation_config.json", {"eos_token_id": [60, third]}),
        ("generation_config.json", {}),
        ("config.json", {"eos_token_id": third}),
        ("config.json", {"text_config": {"eos_token_id": third}}),
        ("config.json", {"eos_token_id": None}),
    ):
        for file in ("generation_config.json", "config.json"):
            (folder / file).unlink(missing_ok=True)
        (folder / name).write_text(json.dumps(config))
        ends = str(third) in json.dumps(config)
        assert generated(generate, folder) == (until if ends else every), (name, config)


@pytest.mark.cpu
@pytest.mark.parametrize("text", ['{"eos_token_id": "</s>"}', "[1]", "{"])
def test_a_file_that_makes_no_sense_is_named(generate, folder, text):
    (folder / "config.json").write_text(text)
    done = generate(folder / "model.so", folder, *PROMPT)
    (folder / "config.json").unlink()
    assert done.returncode == 1 and "config.json" in done.stderr and done.stdout == ""


@pytest.mark.cpu
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux counts yields")
def test_threads_of_kernels_do_not_outlast_the_work(generate, folder):
    """Four threads on one core. Those of TVM's pool would each look for work a million times, and
    yield after each look, before the program ends: three million switches, and where others want
    the core, as many slices of their time. Ours look for 5 ms, and not at all at the end."""
    cores = os.sched_getaffinity(0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw
    os.sched_setaffinity(0, {min(cores)})  # the program inherits it
    try:
        options = ("--threads", 4, "--stop", "none", "--max-tokens", LENGTH)
        looks = {"TVM_THREAD_POOL_SPIN_COUNT": "1000000"}
        many = tokens(generate(*options, folder / "model.so", folder, *PROMPT, **looks))
    finally:
        os.sched_setaffinity(0, cores)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw - before < 200_000
    assert many == generated(generate, folder, "--stop", "none", "--threads", 1)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", gpu.KINDS)
@pytest.mark.by_day("vulkan")
def test_devices(generate, model, folder, kind):
    gpu.device(kind)
    there = compiled(model, target=kind)
    where = ("--stop", "none", "--device", f"{kind}:0", "--driver", find_plugin(kind))
    assert generated(generate, there, *where) == generated(generate, folder, "--stop", "none")


@pytest.mark.cpu
def test_a_driver_that_is_not_there_is_named(generate, folder, tmp_path):
    options = ("--device", "vulkan", "--driver", tmp_path / "none.so")
    done = generate(*options, folder / "model.so", folder, *PROMPT)
    assert done.returncode == 1 and "vulkan's driver cannot be loaded" in done.stderr
