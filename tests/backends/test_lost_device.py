"""What a driver is asked, and what becomes of a lost device: with libraries that stand before it.

The processes that these tests start find `stand_in/<kind>.c` where a driver's library would be.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wherry.machine.plugins import PLUGINS

from ..support.command import python
from ..support.gpu import device
from ..support.tiny_models import compiled, save

pytestmark = pytest.mark.gpu
SYSTEM = {"opencl": "libOpenCL.so.1", "vulkan": "libvulkan.so.1"}
START = """
import ctypes, json, sys
from pathlib import Path
import numpy as np
kind, folder, stand_in = sys.argv[1:4]
driver = ctypes.CDLL(stand_in)
from wherry.artifact.manifest import read_manifest
from wherry.runtime.core.library import open_core, open_runtime
open_runtime(kind)
folder = Path(folder)
library = folder / read_manifest(folder).library
"""
ENGINE = """
from wherry.runtime.core.interface import Finish, SamplingParams
from wherry.runtime.core.native import NativeCore
config = {"max_batch": 4, "context": 128}
core = NativeCore(open_core(), library, folder, kind + ":0", {}, config)
core.start()
"""


@pytest.fixture(scope="module", params=PLUGINS)
def driver(request, tmp_path_factory):
    """(kind, compiled model, a function that runs a script with the stand-in)."""
    kind = request.param
    device(kind)
    maps = Path("/proc/self/maps").read_text()
    match = re.search(rf"/\S+/{re.escape(SYSTEM[kind])}\S*$", maps, re.MULTILINE)
    assert match, f"{SYSTEM[kind]} is not in this process"
    folder = tmp_path_factory.mktemp(kind)
    save(folder / "model", "llama")
    artifact = compiled(folder / "model", target=kind)
    library = folder / "drivers" / SYSTEM[kind]
    library.parent.mkdir()
    source = Path(__file__).with_name("stand_in") / f"{kind}.c"
    cc = shutil.which("cc") or "gcc"
    command = [cc, "-shared", "-fPIC", "-O1", "-Wall", "-Wno-pedantic", "-o", str(library)]
    command += [f'-DSYSTEM="{match[0]}"', str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def run(script):
        path = str(library.parent)
        return python(script, kind, str(artifact), str(library), LD_LIBRARY_PATH=path).split("\n")

    return run


LOST = (
    START
    + ENGINE
    + """
def ends(n):
    found = []
    while len(found) < n:
        events = core.wait_events(20_000)
        assert events, core.stats()
        found += [event for event in events if event.finish != Finish.RUNNING]
    return found

for i in range(2):
    core.add(i, [3, 4, 5 + i], SamplingParams(max_tokens=100, temperature=0))
core.wait_events(60_000)
driver.stand_in_lose()
lost = ends(2)
kinds = {Finish(e.finish).name for e in lost}
print(sorted(e.id for e in lost), kinds, core.stats().failed_steps > 0)
core.add(7, [3], SamplingParams(max_tokens=4))
(last,) = ends(1)
print(Finish(last.finish).name, repr(last.error))
core.close()
del core
print("lives")
"""
)


@pytest.mark.by_day("opencl")
def test_a_lost_device_ends_requests_and_not_the_process(driver):
    ended, later, lives, _ = driver(LOST)
    assert ended == "[0, 1] {'ERROR'} True"
    assert later.startswith("ERROR ") and re.search("DEVICE_LOST|INVALID_COMMAND_QUEUE", later)
    assert lives == "lives"


FREED = (
    START
    + """
import tvm
there = tvm.device(kind, 0)
first = tvm.runtime.tensor(np.ones(8_000_000, "float32"), there)  # memory of its own
second = first.copyto(there)
driver.stand_in_lose()
del first, second
try:
    tvm.runtime.tensor(np.ones(9), there).numpy()
except RuntimeError as e:
    print(e)
"""
)


@pytest.mark.by_day("vulkan")
@pytest.mark.nightly
def test_memory_of_a_lost_device_is_given_up(driver):
    assert re.search("DEVICE_LOST|INVALID_COMMAND_QUEUE", driver(FREED)[0])


STEP = (
    START
    + ENGINE.replace("core.start()", "")
    + """
def starts(function):
    before = driver.stand_in_starts()
    core._call(function, core._engine)
    return driver.stand_in_starts() - before

core.add(0, [3, 4, 5], SamplingParams(max_tokens=2, temperature=0))
started = starts("wherry_engine_launch")
print(driver.stand_in_kernels() > 0, started > 0)
array, count = core._events, ctypes.c_size_t()
before = driver.stand_in_starts()
core._api.wherry_engine_collect(core._engine, array, 8, ctypes.byref(count))
print(count.value, array[0].token >= 0, driver.stand_in_starts() - before)
"""
)


def test_a_launch_starts_the_device_and_its_readback(driver):
    launched, collected, _ = driver(STEP)
    assert launched == "True True"
    assert collected == "1 True 0"  # it waits for what is under way


UNLOADED = (
    START
    + """
import gc
def once():
"""
    + "".join(f"    {line}\n" for line in ENGINE.splitlines())
    + """
    core.add(0, [3, 4, 5], SamplingParams(max_tokens=3, temperature=0))
    tokens = []
    while len(tokens) < 3:
        events = core.wait_events(60_000)
        assert events, core.stats()
        tokens += [e.token for e in events]
    there = driver.stand_in_kernels()
    core.close()
    return tokens, there

first, there = once()
gc.collect()
gone = driver.stand_in_kernels()
print(there > 0, gone, once()[0] == first)
"""
)


def test_kernels_go_with_the_last_module(driver):
    assert driver(UNLOADED)[0] == "True 0 True"
