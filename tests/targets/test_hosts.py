"""Libraries for other machines than this: what is in them, and who can use them."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import tvm
import tvm_ffi

from wherry.artifact.manifest import read_manifest, verify
from wherry.compiler import choices
from wherry.compiler.api import Limits, ensure_artifact
from wherry.errors import ArtifactError, UsageError
from wherry.machine.cpu import machine_problems
from wherry.targets import cpu, hosts
from wherry.targets.target import KINDS, find

from ..support import gpu, object_files
from ..support.tiny_models import Runner, compiled, save

# Target, host: format, CPU, platform of the objects; what SystemLib is called with begins so.
HOSTS = {
    ("metal", None): ("Mach-O", "aarch64", "macos 13.0", None),
    ("metal:macabi", None): ("Mach-O", "aarch64", "macabi 16.0", "wherry_"),
    ("iphone", None): ("Mach-O", "aarch64", "ios 16.0", "wherry_"),
    ("iphone:a14", None): ("Mach-O", "aarch64", "ios 16.0", "wherry_"),
    ("iphone:simulator", None): ("Mach-O", "aarch64", "ios-simulator 16.0", "wherry_"),
    ("metal", "ios"): ("Mach-O", "aarch64", "ios 16.0", "wherry_"),
    ("android", None): ("ELF", "aarch64", "", "wherry_"),
    ("android:mali", None): ("ELF", "aarch64", "", "wherry_"),
    ("android:vulkan", None): ("ELF", "aarch64", "", "wherry_"),
    ("cpu:cortex-a76", "android"): ("ELF", "aarch64", "", "wherry_"),
    ("cpu", "arm64-apple-macos13.0"): ("Mach-O", "aarch64", "macos 13.0", None),
}
DEVICE_CODE = {
    "metal": b"kernel void",
    "opencl": b"__kernel void",
    "vulkan": b"\x03\x02\x23\x07",  # a SPIR-V module begins so
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    save(folder, "llama", num_hidden_layers=1)
    return folder


# Both formats, and no device.
BY_DAY = (("iphone", None), ("android", None), ("cpu", "arm64-apple-macos13.0"))


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("target", "host"),
    [pytest.param(*case, marks=[] if case in BY_DAY else pytest.mark.nightly) for case in HOSTS],
)
@pytest.mark.by_day("android")
def test_objects_are_the_host_s(model, target, host):
    limits = Limits(max_batch=8, prefill_chunk=64)
    if target == "android:vulkan":
        gpu.device("vulkan")  # its plugin and naga take part in code generation
    folder = ensure_artifact(str(model), target=target, host=host, limits=limits)
    manifest = verify(folder, machine=False)
    format_, arch, platform, symbols = HOSTS[target, host]
    objects = object_files.of(folder / manifest.library)
    data, code = sorted(objects, key=lambda f: not f.name.endswith("devc.o"))
    assert {(f.format, f.arch, f.platform) for f in objects} == {(format_, arch, platform)}
    kind = manifest.target["kind"]
    assert (kind == "llvm") == target.startswith("cpu")
    assert (DEVICE_CODE.get(kind, b"") in data.data) and manifest.target["name"]
    if kind == "metal":
        old = target in ("iphone", "iphone:simulator")
        assert manifest.target["device_features"] == ([] if old else ["MTLGPUFamilyApple7"])
    said = manifest.target["objects"]
    assert said["format"] == format_
    if symbols is None:
        assert "symbols" not in said and b"SystemLibSymbol" not in data.data
    else:
        prefix = said["symbols"]
        assert re.fullmatch("wherry_[0-9a-f]{18}_", prefix)
        assert b"TVMFFIEnvModRegisterSystemLibSymbol" in data.data
        assert f"{prefix}__tvm_ffi_".encode() in code.data
    (problem,) = machine_problems(manifest.target)
    assert manifest.target["host"] in problem
    with pytest.raises(ArtifactError, match=f"compiled for {manifest.target['host']}"):
        verify(folder)


@pytest.mark.cpu
@pytest.mark.nightly
def test_objects_for_linux_are_elf_with_and_without_a_linker(model, monkeypatch):
    name = next(n for n in ("linux-aarch64", "linux-x86_64") if n != hosts.here().name)
    monkeypatch.setattr(hosts.shutil, "which", lambda name: None)
    limits = Limits(max_batch=8, prefill_chunk=64)
    folder = ensure_artifact(str(model), target="opencl", host=name, limits=limits)
    target = object_files.of(folder / "model.tar")
    assert {(f.format, f.arch) for f in target} == {("ELF", name.partition("-")[2])}
    assert read_manifest(folder).target["objects"] == {"format": "ELF"}


@pytest.mark.cpu
@pytest.mark.nightly
def test_a_program_finds_the_model_that_is_linked_into_it(model, monkeypatch, tmp_path):
    """As an app does it, with this machine in the part of the phone."""
    here, expected = hosts.here(), Runner(compiled(model)).step({0: [3, 1, 4]})[0]
    monkeypatch.setitem(hosts.HOSTS, here.name, replace(here, symbols="wherry_{key}_"))
    preset = replace(find("cpu"), library="tar")
    monkeypatch.setattr(choices, "find_target", lambda text, host: preset)
    folder = compiled(model)
    target = read_manifest(folder).target
    assert machine_problems(target) == [
        "its library is an archive of objects, which wait for a program's linker"
    ]
    for file in object_files.of(folder / "model.tar"):
        (tmp_path / file.name.rpartition("/")[2]).write_bytes(file.data)
    program = tmp_path / "program.so"
    objects = sorted(map(str, tmp_path.glob("*.o")))
    subprocess.run(["g++", "-shared", *objects, "-o", str(program)], check=True)
    ctypes.CDLL(str(program))
    linked = tvm_ffi.system_lib(target["objects"]["symbols"])
    monkeypatch.setattr(tvm.runtime, "load_module", lambda path: linked)
    assert np.array_equal(Runner(folder).step({0: [3, 1, 4]})[0], expected)


def test_hosts_have_names_and_triples():
    for name, host in hosts.HOSTS.items():
        assert hosts.find(name) is host and hosts.find(host.triple) is host
        assert find("cpu", name).host["mtriple"] == host.triple if name != "wasm32" else True
    with pytest.raises(UsageError, match=r"(?s)'beos'.*android .*aarch64-linux-android24"):
        hosts.find("beos")
    assert find("cpu", hosts.here().name).record() == find("cpu").record()


@pytest.mark.parametrize(
    ("target", "host", "said"),
    [
        ("metal", "android", "Target metal cannot have the host android; it can have macos, mac"),
        ("cpu", "windows", "Unknown host 'windows'; there are.*windows-x86_64"),
        ("cpu", "riscv64-unknown-linux-gnu", "Unknown host 'riscv64-unknown-linux-gnu'; there are"),
        ("webgpu", "ios", "it can have wasm32"),
        ("android", "linux-aarch64", "it can have android"),
        ("cpu", "wasm32", "linux-x86_64, linux-aarch64, android"),
        ("opencl", "ios", "linux-x86_64, linux-aarch64"),
        ("cpu:znver4", "ios", "no CPU called 'znver4' on ios"),
        ("cpu:x86-64-v3+", "android", r"no level 'x86-64-v3\+' on android"),
        ("metal:x", None, "macabi"),
        ("iphone:x", None, "simulator"),
        ("android:x", None, "mali"),
        ("webgpu:x", None, "--target webgpu"),
    ],
)
def test_what_does_not_go_together(target, host, said):
    with pytest.raises(UsageError, match=f"(?s){said}"):
        find(target, host)


def test_limits_of_presets():
    def limits(text):
        return find(text).kernels.kernels.limits

    old = limits("iphone")
    assert limits("iphone:simulator") == old and not old.simdgroups
    for newer in ("metal", "metal:macabi", "iphone:a14"):
        assert limits(newer) == replace(old, simdgroups=True)
    assert (limits("metal").shared_memory_bytes, limits("metal").storage_buffers) == (32768, 30)
    assert limits("android").threads_per_block == 2 * limits("android:mali").threads_per_block
    page = limits("webgpu")
    assert (page.threads_per_block, page.shared_memory_bytes, page.storage_buffers) == (
        256,
        16384,
        8,
    )
    for kind in ("metal", "iphone", "android", "webgpu"):
        assert find(kind).record()["name"] == kind and kind in KINDS


def test_levels_for_another_system(monkeypatch):
    there = hosts.Host(name="bsd", triple="x86_64-unknown-freebsd", cpu="x86-64-v3", objects="ELF")
    monkeypatch.setitem(hosts.HOSTS, "bsd", there)
    monkeypatch.setattr(cpu, "HOSTS_OF_CPUS", ("bsd",))
    levels = find("cpu:x86-64-v3+", "bsd")
    assert levels.library == "tar" and len(levels.variants) == 3
    assert {p.host["mtriple"] for p in (levels, *levels.variants)} == {there.triple}
    assert json.dumps(levels.variants[-1].objects("k")) == '{"format": "ELF"}'
