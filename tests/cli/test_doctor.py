"""`wherry doctor` and --target auto, with and without devices; NVIDIA's driver is played."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click
import pytest

from wherry.cli import doctor as doctor_command
from wherry.cli import doctor_text
from wherry.errors import ToolchainError, UsageError
from wherry.machine.cpu import AMX
from wherry.packager.platforms import PLATFORMS
from wherry.targets import auto
from wherry.targets.target import KINDS, find
from wherry.targets.toolchains.web import CORES

from ..support.command import python, wherry


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A folder with a libcuda.so.1 that has one GPU, and a libcudart.so.13."""
    folder = tmp_path_factory.mktemp("driver")
    source = str(Path(__file__).parents[1] / "support" / "fake_cuda.cc")
    for name in ("libcuda.so.1", "libcudart.so.13"):
        command = ["g++", "-shared", "-fPIC", source, "-o", str(folder / name)]
        subprocess.run(command, check=True)
    return str(folder)


def doctor(**env):
    done = wherry("doctor", "--json", **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_doctor_lists_devices_and_tools(tmp_path):
    report = doctor(CUDA_PATH=str(tmp_path))
    assert report["ok"] and report["checks"]["cpu"]["found"].startswith("cpu:")
    assert set(report["devices"]) == {"cuda", "opencl", "vulkan"}
    assert set(report["targets"]) == set(KINDS)
    assert report["targets"]["cpu"] == []
    assert set(report["apps"]) == set(PLATFORMS)
    assert all(tools for tools in report["apps"].values())
    nvcc = report["targets"]["cuda"][0]
    assert nvcc == {"name": "nvcc", "found": None, "fix": "pip install 'wherry[cuda]'"}


def test_doctor_is_read_by_people(driver, tmp_path):
    done = wherry("doctor", LD_LIBRARY_PATH=driver, CUDA_PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["lacks", "cuda", "nvcc:", "pip", "install", "'wherry[cuda]'"] in rows
    assert any(row[:4] == ["ok", "cuda", "Fake", "H200,"] for row in rows)
    assert any(row[1:3] == ["--target", "auto"] for row in rows)
    assert "this machine has Fake H200, which goes unused. Target cuda:sm_90 needs" in done.stderr


def test_what_only_other_targets_lack_is_optional():
    core = {"name": "wherry-core.o", "found": None, "fix": CORES[""].fix}
    report = {"checks": {}, "devices": {}, "apps": {}, "targets": {"cpu": [], "webgpu": [core]}}
    report |= {"auto": {"ok": True, "found": "cpu:x86-64-v3"}, "ok": True}
    lines = [click.unstyle(line).strip() for line in doctor_text.lines(report)]
    start = lines.index(
        "Targets to compile for (all but cpu are optional: what to type if you want one)"
    )
    assert " ".join(lines[start + 2].split()).startswith(
        "lacks webgpu wherry-core.o: apt-get install"
    )
    assert CORES[""].fix.endswith("in a checkout: make browser")
    assert lines[-1].split() == "ok wherry run has all that it needs; type: wherry run demo".split()


def test_a_failure_is_described_without_the_name_of_a_class():
    for error, description in {
        ToolchainError("The plugin is missing. Type: make"): "The plugin is missing. Type: make",
        OSError("libcuda.so.1: wrong ELF class"): "OSError: libcuda.so.1: wrong ELF class",
    }.items():

        def check(error=error):
            raise error

        assert doctor_command._attempt(check) == {"ok": False, "found": description}


def test_doctor_fails_where_the_core_is_missing(tmp_path):
    done = wherry("doctor", WHERRY_CORE=str(tmp_path / "none.so"))
    assert done.returncode == 1
    assert "FAIL   core" in done.stdout and "Traceback" not in done.stderr


def test_a_gpu_is_listed_through_its_driver(driver):
    (gpu,) = doctor(LD_LIBRARY_PATH=driver)["devices"]["cuda"]["devices"]
    assert gpu == {
        "name": "Fake H200",
        "kind": "cuda",
        "memory_bytes": 141 << 30,
        "available_bytes": None,
        "largest_buffer_bytes": 141 << 30,
        "discrete": True,
        "driver": "13.1",
        "software": False,
        "threads_per_block": None,
        "code": "sm_90",
    }
    refused = doctor(LD_LIBRARY_PATH=driver, FAKE_CUDA_ERROR="803")["devices"]["cuda"]
    assert refused["devices"] == [] and "different versions" in refused["problem"]


AUTO = """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
from wherry.targets.auto import candidates
for c in candidates(): print(c.target, "because", c.reason)
print("torch" in sys.modules)
"""


def test_auto_takes_a_gpu_before_the_cpu(driver):
    lines = python(AUTO, LD_LIBRARY_PATH=driver).splitlines()
    assert "cuda:sm_90 because this machine has Fake H200" in lines
    assert lines[-2].startswith("cpu because") and lines[-1] == "False"
    newer = python(AUTO, LD_LIBRARY_PATH=driver, FAKE_CUDA_CODE="130").splitlines()
    assert "cuda because this machine has Fake H200" in newer
    older = python(AUTO, LD_LIBRARY_PATH=driver, FAKE_CUDA_CODE="61").splitlines()
    assert "Target cuda is not considered: Fake H200 can do too little" in older


def device(kind, **facts):
    usual = {"name": "GPU", "memory_bytes": 1 << 33, "available_bytes": None, "code": None}
    usual |= {"largest_buffer_bytes": 1 << 32, "discrete": False, "driver": "1"}
    usual |= {"software": False, "threads_per_block": 1024}
    return auto.Device(kind=kind, **usual | facts)


def targets(monkeypatch, **devices):
    monkeypatch.setattr(auto, "list_devices", lambda kind: devices.get(kind, []))
    return [candidate.target for candidate in auto.candidates()]


def test_a_cpu_that_plays_a_gpu_never_wins(monkeypatch):
    software = {k: [device(k, software=True)] for k in ("opencl", "vulkan")}
    assert targets(monkeypatch, **software) == ["cpu"]
    real = {k: [device(k)] for k in ("opencl", "vulkan")}
    assert targets(monkeypatch, **real) == ["vulkan", "opencl", "cpu"]
    small = {"opencl": [device("opencl", threads_per_block=128)]}
    assert targets(monkeypatch, **small) == ["opencl:128", "cpu"]
    smaller = {"vulkan": [device("vulkan", threads_per_block=32)]}
    assert targets(monkeypatch, **smaller) == ["cpu"]


def test_auto_for_another_host_is_its_cpu():
    assert find("auto", "linux-aarch64").device["kind"] == "llvm"


CHECK = """
import sys
from wherry.machine import cuda_driver
from wherry.errors import ToolchainError
try:
    cuda_driver.open_libraries()
    shared_bytes, *codes = sys.argv[1:]
    cuda_driver.require_code(codes, {cuda_driver.SHARED_MEMORY: int(shared_bytes)})
    print("runs")
except ToolchainError as e:
    print(e)
"""


def test_a_library_for_newer_or_larger_gpus_is_refused(driver):
    assert python(CHECK, "232448", "sm_80", "sm_120", LD_LIBRARY_PATH=driver) == "runs\n"
    said = python(CHECK, "0", "sm_100", LD_LIBRARY_PATH=driver)
    assert "GPUs from sm_100, and Fake H200 is sm_90. Type: wherry compile" in said
    said = python(CHECK, "232449", "sm_80", LD_LIBRARY_PATH=driver)
    assert "need 232449 bytes of shared memory a block, and Fake H200 has 232448. Type:" in said
    broken = python(CHECK, "0", "sm_80", LD_LIBRARY_PATH=driver, FAKE_CUDA_ERROR="100")
    assert "CUDA_VISIBLE_DEVICES hides it" in broken and "Type: nvidia-smi" in broken


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("cpu:sapphirerapids", "matrix units (AMX) multiply prompts with --activations bf16"),
        ("cpu:znver4", "the system does not let this process use its matrix units"),
    ],
)
def test_doctor_says_what_amx_is_for(monkeypatch, target, said):
    """On a machine that has it, where the system allows it and where not."""
    preset = find(target)
    monkeypatch.setattr("wherry.targets.target.find", lambda _: preset)
    monkeypatch.setattr(doctor_command, "cpu_flags", lambda: AMX | {"avx2"})
    assert said in doctor_command._cpu()
    monkeypatch.setattr(doctor_command, "cpu_flags", lambda: frozenset({"avx2"}))
    assert ("AMX" in doctor_command._cpu()) == bool(preset.bf16)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("coda", "cuda"),
        ("openl", "opencl"),
        ("rocm1", "rocm"),
        ("zzz", "cpu"),
        ("CUDA", "cuda"),
        ("gpu", "auto"),
        ("ios", "iphone"),
        ("wgpu", "webgpu"),
    ],
)
def test_an_unknown_target_names_the_closest(text, fix):
    with pytest.raises(UsageError, match=rf"'{text}'; there are auto, cpu.*--target {fix}$"):
        find(text)
