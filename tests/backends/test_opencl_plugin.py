"""The OpenCL plugin: what it refuses, its memory, its cache of programs."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.script import tirx as T
from tvm.target import Target

from wherry.base import settings
from wherry.errors import ToolchainError
from wherry.machine import plugins
from wherry.runtime.core import library as core_library
from wherry.targets import opencl

from ..support.command import python
from ..support.gpu import device

_COPIES = itertools.count()


@pytest.fixture(scope="module")
def plugin():
    """Path of the library, in the core's folder."""
    return plugins.find_core().with_name("libwherry_opencl.so")


REFUSED = """
import ctypes, sys
from wherry.runtime.core.library import open_runtime
open_runtime("cpu")
plugin = ctypes.CDLL(sys.argv[1])
plugin.wherry_opencl_open.restype = ctypes.c_char_p
print(plugin.wherry_opencl_open(b"0.26.0", None).decode())
print("tvm" in sys.modules)
"""


def test_another_version_of_tvm_is_refused(plugin):
    words, loaded = python(REFUSED, str(plugin)).splitlines()
    assert "built for apache-tvm 0.27.0" in words and "0.26.0" in words
    assert loaded == "False"


def test_a_missing_plugin_is_explained(monkeypatch, tmp_path):
    monkeypatch.setattr(plugins, "places", lambda stem: [tmp_path / f"lib{stem}.so"])
    monkeypatch.setattr(plugins, "find_core", lambda: tmp_path / "libwherry.so")
    with pytest.raises(ToolchainError, match="WHERRY_OPENCL=ON"):
        plugins.open_plugin.__wrapped__("opencl")


NO_OPENCL = """
import ctypes, sys
from wherry.runtime.core.library import open_runtime
open_runtime("opencl")
import tvm_ffi, tvm
print(tvm.device("opencl", 0).exist)
try:
    tvm.runtime.tensor([1.0], tvm.device("opencl", 7))
except Exception as e:
    print(type(e).__name__, e)
"""


def test_no_such_device_is_an_error_with_words(tmp_path):
    """Also on a machine without OpenCL: the library loads, devices are looked up when needed."""
    out = python(NO_OPENCL, WHERRY_CACHE=str(tmp_path), OCL_ICD_VENDORS=str(tmp_path))
    exists, error = out.splitlines()[:2]
    assert exists == "False"
    assert "RuntimeError" in error and "OpenCL" in error


def test_damaged_libraries_are_refused():
    core_library.open_runtime("opencl")
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.opencl")
    text = lambda s: len(s).to_bytes(8, "little") + s  # noqa: E731
    one = (1).to_bytes(8, "little")
    for blob, words in (
        (b"", "cut short"),
        (text(b"spirv"), 'format "spirv"'),
        (text(b"cl") + one, "cut short"),
        (text(b"cl") + b"\xff" * 8, "cut short"),
        (
            text(b"cl") + one + 2 * text(b"k") + 3 * bytes(8) + text(b"// Function: other\n{}"),
            "kernel k has no source",
        ),
        (text(b"cl") + one + 2 * text(b"k") + bytes(8) + one + text(b"vthread"), "vthread"),
    ):
        with pytest.raises(ValueError, match=words):
            load(blob)


@pytest.mark.gpu
class TestMemory:
    def test_copies_keep_every_byte(self):
        there = device("opencl")
        for shape in ((1,), (7, 3), (0, 5), (1000, 33)):
            array = np.random.default_rng(1).standard_normal(shape).astype("float32")
            tensor = tvm.runtime.tensor(array, there)
            again = tensor.copyto(there)
            assert np.array_equal(again.numpy(), array)

    def test_freed_memory_is_used_again(self):
        """More than the machine has, one buffer after the other."""
        there = device("opencl")
        array = np.ones((16, 1 << 20), "float32")
        for i in range(40):
            tensor = tvm.runtime.tensor(array * i, there)
            assert tensor.numpy()[3, 5] == i
            del tensor


def library(function: str, path, group: int = 32) -> None:
    """A kernel that applies an OpenCL function to twice `group` elements."""
    size = 2 * group

    @T.prim_func(s_tir=True)
    def apply(x: T.Buffer((size,), "float32"), y: T.Buffer((size,), "float32")):
        for b in T.thread_binding(2, thread="blockIdx.x"):
            for t in T.thread_binding(group, thread="threadIdx.x"):
                with T.sblock("apply"):
                    y[b * group + t] = T.call_pure_extern("float32", function, x[b * group + t])

    preset = opencl.preset(None)
    target = Target(dict(preset.device), host=dict(preset.host))
    tvm.compile(tvm.IRModule({"apply": apply}), target=target).export_library(str(path))


def run(path, size: int = 64) -> np.ndarray:
    """Load the library, apply its kernel and unload it.

    A copy of the file, and not for ever: what is loaded already keeps the kernels it has.
    """
    copy = path.with_name(f"{next(_COPIES)}.so")
    shutil.copy(path, copy)
    x = tvm.runtime.tensor(np.arange(size, dtype="float32"), device("opencl"))
    y = tvm.runtime.tensor(np.zeros(size, "float32"), device("opencl"))
    tvm_ffi.load_module(str(copy), keep_module_alive=False)["apply"](x, y)
    return y.numpy()


UNWRITABLE = """
import sys, numpy as np, tvm
from wherry.runtime.core.library import open_runtime
open_runtime("opencl")
there = tvm.device("opencl", 0)
x = tvm.runtime.tensor(np.arange(64, dtype="float32"), there)
y = tvm.runtime.tensor(np.zeros(64, "float32"), there)
tvm.runtime.load_module(sys.argv[1])["apply"](x, y)
print(y.numpy().tolist() == list(range(64)))
"""


@pytest.mark.gpu
class TestPrograms:
    def test_binaries_are_kept_and_checked(self, tmp_path):
        device("opencl")
        path, cache = tmp_path / "kernel.so", settings.cache_dir() / "programs" / "opencl"
        before = set(cache.iterdir()) if cache.is_dir() else set()
        expected = np.sqrt(np.arange(64, dtype="float32"))
        library("sqrt", path)
        np.testing.assert_allclose(run(path), expected, rtol=1e-6)
        (binary,) = set(cache.iterdir()) - before
        content, modified = binary.read_bytes(), binary.stat().st_mtime_ns
        assert b"__kernel void" in content
        np.testing.assert_allclose(run(path), expected, rtol=1e-6)
        assert binary.stat().st_mtime_ns == modified
        # Of another source, cut, without a binary, empty, a bit of the binary: built again.
        source = 16 + int.from_bytes(content[:8], "little")
        middle = (source + len(content)) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        cut = (content[:100], content[:source], content[:-1], b"")
        for bad in (content.replace(b"sqrt", b"fabs", 1), *cut, flipped):
            binary.write_bytes(bad)
            np.testing.assert_allclose(run(path), expected, rtol=1e-6)
            again = binary.read_bytes()  # of the same text; PoCL's binaries need not be the same
            assert again != bad and len(again) > source
            assert again[16:source] == content[16:source]
        other = b"no binary"  # the driver refuses it
        checksum = 0xCBF29CE484222325
        for byte in (len(other)).to_bytes(8, "little") + other:  # FNV-1a, as support/hash.h
            checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
        binary.write_bytes(
            content[:8] + checksum.to_bytes(8, "little") + content[16:source] + other
        )
        np.testing.assert_allclose(run(path), expected, rtol=1e-6)

    def test_the_log_of_the_devices_compiler_is_in_the_error(self, tmp_path):
        device("opencl")
        library("no_such_function", tmp_path / "kernel.so")
        with pytest.raises(RuntimeError, match="refuses kernel apply_kernel") as error:
            run(tmp_path / "kernel.so")
        assert "no_such_function" in str(error.value)

    def test_a_group_that_the_device_does_not_run_is_named(self, tmp_path):
        most = int(device("opencl").max_threads_per_block)
        library("fabs", tmp_path / "kernel.so", 2 * most)
        words = rf"groups of {2 * most} \(the device allows {most}\).*CL_INVALID_WORK_"
        with pytest.raises(RuntimeError, match=words):
            run(tmp_path / "kernel.so", 4 * most)

    def test_a_cache_that_cannot_be_written_costs_time_alone(self, tmp_path):
        device("opencl")
        (tmp_path / "file").write_text("")
        library("fabs", tmp_path / "kernel.so")
        out = python(UNWRITABLE, str(tmp_path / "kernel.so"), WHERRY_CACHE=str(tmp_path / "file"))
        assert out.strip() == "True"


def test_the_plugin_exports_two_symbols(plugin):
    assert ctypes.CDLL(str(plugin)).wherry_opencl_open
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", str(plugin)], capture_output=True, text=True, check=True
    )
    own = {line.split()[-1] for line in shown.stdout.splitlines() if "wherry" in line}
    assert own == {"wherry_opencl_devices", "wherry_opencl_open"}
