"""A package's library on GPUs, as a phone loads it: through Kotlin, on drivers that run on CPUs.

The library is built for this machine from the sources and by the steps that make Android's.
"""

from __future__ import annotations

import json
import os
import platform

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.packager import package
from wherry.packager.platforms import DEVICES
from wherry.runtime import MLCEngine

from ..app.request_cases import ASK, GREEDY
from ..support import gpu
from ..support.command import wherry
from .conftest import java_on

pytestmark = [pytest.mark.nightly, pytest.mark.mobile]
PLATFORM = f"linux-{platform.machine()}"
BEGUN = {"prompt": "Once upon a time", **GREEDY}  # as kotlin/Checks.kt has it
# No driver is found: neither by the loader of OpenCL nor by Vulkan's.
WITHOUT_DRIVERS = {
    "OCL_ICD_VENDORS": "/none",
    "VK_ICD_FILENAMES": "/none",
    "VK_DRIVER_FILES": "/none",
}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A package for both kinds of devices. Compiles the core."""
    for kind in DEVICES:
        gpu.device(kind)
    out = tmp_path_factory.mktemp("devices") / "out"
    targets = [word for kind in DEVICES for word in ("--target", f"{PLATFORM}:{kind}")]
    done = wherry("package", "demo", *targets, "-o", str(out), timeout=1800)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def checks(jars, classes, packed):
    """Run cases of kotlin/Checks.kt with options of a load; what they found."""
    library = packed / "lib" / PLATFORM / "libwherry.so"
    folder = packed / "assets" / "demo"

    def run(options, *cases, **environment):
        words = ("ChecksKt", folder, json.dumps({"threads": 1, **options}), *cases)
        return java_on([library], f"{classes}:{jars}", *words, **environment)

    return run


def greedy(target):
    """What the server's engine answers on a device to Checks.kt's questions."""
    with MLCEngine(ensure_artifact("demo", target=target), threads=1) as engine:
        text = engine.completions.create(**BEGUN).choices[0]
        chat = engine.chat.completions.create(messages=ASK, **GREEDY).choices[0].message.content
    said = {"text": text.text, "streamed": text.text, "chat": chat, "chat_streamed": chat}
    return {**said, "finish": text.finish_reason}


@pytest.mark.parametrize("kind", DEVICES)
def test_greedy_texts_are_the_server_s_on_that_device(checks, kind, tmp_path):
    report = checks({"device": kind, "pack_dir": str(tmp_path)}, "device", "answers")
    assert report["device"] == {"device": kind, "passed": {}}
    assert report["answers"] == greedy(DEVICES[kind])
    assert any((tmp_path / "programs").iterdir())  # what the driver compiled is kept


def test_a_program_that_imitates_a_gpu_is_passed_over(checks):
    report = checks({}, "device", "answers")
    assert report["device"]["device"] == "cpu"
    assert list(report["device"]["passed"]) == list(DEVICES.values())
    for kind, reason in zip(DEVICES, report["device"]["passed"].values(), strict=True):
        assert "is a program on the CPU" in reason
        assert f'Option "device": "{kind}" takes it' in reason
    assert report["answers"] == greedy("cpu")


def test_without_drivers_it_runs_on_the_cpu_and_says_why(checks):
    report = checks({}, "device", **WITHOUT_DRIVERS)["device"]
    assert report["device"] == "cpu"
    for kind, reason in zip(DEVICES, report["passed"].values(), strict=True):
        assert f"no {kind} device works here" in reason


def test_loads_on_a_device_leave_nothing(checks, tmp_path):
    """Of memory, threads and open files, from the second tenth of the loads to the last.

    PoCL's LLVM keeps about 65 nodes of metadata of the programs of each load, 3 kB and what its
    tables grow by: of what 40 loads had left on the heap, the rest was the same after 20.
    """
    rounds = int(os.environ.get("WHERRY_LOADS", "100"))  # by hand also 1000, which take an hour
    options = {"device": "opencl", "pack_dir": str(tmp_path)}
    sizes = checks(options, f"leaks:{rounds}")["leaks"]
    (first, *_), last = sizes[1:], sizes[-1]
    assert last[0] - first[0] < 24_000, sizes  # kB
    assert last[1] <= first[1] and last[2] <= first[2], sizes


def test_the_index_lists_the_code(packed):
    (model,) = json.loads((packed / package.INDEX).read_text())["models"]
    codes = model["codes"][PLATFORM]
    assert [code["device"] for code in codes] == [*DEVICES, "cpu"]
    assert len({code["symbols"] for code in codes}) == len(codes)
    assert codes[-1]["symbols"] == model["symbols"]
