"""The Metal plugin on Objective-C's run time: sequence of calls, memory, errors, its archive."""

from __future__ import annotations

import json
import re

import pytest
import tvm
from tvm.script import tirx as T
from tvm.target import Target

from wherry.targets.target import find

from ..support import fake_metal

pytestmark = pytest.mark.cpu
GROUPS, THREADS = 4, 64


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A library whose kernel computes y = x + z[0] n + k, driven by this machine."""
    size = GROUPS * THREADS

    @T.prim_func(s_tir=True)
    def add(
        x: T.Buffer((size,), "float32"), y: T.Buffer((size,), "float32"), rest: T.handle, k: T.int32
    ):
        n = T.int64()
        z = T.match_buffer(rest, (n,), "float32")
        for b in T.thread_binding(GROUPS, thread="blockIdx.x"):
            for t in T.thread_binding(THREADS, thread="threadIdx.x"):
                with T.sblock("add"):
                    y[b * THREADS + t] = (
                        x[b * THREADS + t] + z[0] * T.cast(n, "float32") + T.cast(k, "float32")
                    )

    target = Target(dict(find("metal").device), host={"kind": "llvm"})
    path = tmp_path_factory.mktemp("metal") / "add.so"
    tvm.compile(tvm.IRModule({"add": add}), target=target).export_library(str(path))
    return path


START = """
import ctypes, gc, json, os, sys
import numpy as np
from tests.support import fake_metal
fake = fake_metal.opened(sys.argv[2] if len(sys.argv) > 2 else "")
import tvm, tvm_ffi
there = tvm.device("metal", 0)
x = np.arange(256, dtype="float32")
z = np.array([10, 1, 1], "float32")
def tensor(array):
    return tvm.runtime.tensor(array, there)
def load():
    return tvm_ffi.load_module(sys.argv[1], keep_module_alive=False)
def expected(k, of=x):
    return of + 3 * z[0] + k
def same(tensor, array):
    return bool(np.array_equal(tensor.numpy(), array))
def error(call, *arguments):
    try:
        call(*arguments)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
before = {}
def counted():
    # What has happened since the last call.
    global before
    now = fake.events()
    changed = {name: n - before.get(name, 0) for name, n in now.items() if n != before.get(name)}
    before = now
    return changed
told = {}
"""
END = """
gc.collect()
print(json.dumps({**told, "broken": fake.broken(), "objects": fake.objects()}))
"""


def run(script, *arguments, **env):
    """What the script wrote into `told`, the broken rules, and the objects that live at its end."""
    lines = fake_metal.python(START + script + END, *map(str, arguments), **env).splitlines()
    return json.loads(lines[-1])


SEQUENCE = """
a, b, c = tensor(x), tensor(0 * x), tensor(z)
d, e = tensor(0 * x), tensor(0 * x)
counted()
module = load()
add = module["add"]
add(a, b, c, 7)
told["right"] = same(b, expected(7))
told["first"] = counted()
for k in range(5):
    add(a, b, c, k)
told["last of five"] = same(b, expected(4))
told["five"] = counted()

# The host writes what a queued command reads: the command still gets what was there.
add(a, b, c, 7)
tvm.runtime.tensor(-x).copyto(a)
add(a, d, c, 7)
told["queued"] = counted()
told["before and after"] = same(b, expected(7)) and same(d, expected(7, -x))
counted()
tvm.runtime.tensor(x).copyto(a)
told["idle"] = counted()

# What a copy to the host got, later commands do not change.
start, take = (tvm_ffi.get_global_func(f"wherry.metal.{name}") for name in ("start", "take"))
host = tvm.runtime.tensor(0 * x)
add(a, b, c, 1)
start(b)
add(a, b, c, 2)
start(d)
add(a, b, c, 3)
take(b, host)
told["taken"] = same(host, expected(1)) and same(b, expected(3))
add(a, b, c, 4)
start(b)
add(a, b, c, 5)
start(a), start(d)  # the first of three is dropped
take(b, host)
told["dropped"] = same(host, expected(5))

# Sizes that a device's copies cannot have.
odd = np.arange(7, dtype="int8")
f, g = tensor(odd), tensor(0 * odd)
f.copyto(g)
told["odd"] = same(g, odd)
large = tensor(np.ones((1 << 19,), "float32"))
copy = large.copyto(there)
told["large"] = same(copy, np.ones((1 << 19,), "float32"))
add(a, e, c, 0)
del a, b, c, d, e, f, g, large, copy, host, add, module  # with a command that was not waited for
"""


@pytest.fixture(scope="module")
def sequence(kernels):
    return run(SEQUENCE, kernels)


@pytest.mark.nightly
def test_a_step_is_one_command_buffer(sequence):
    one = {"command buffer": 1, "compute encoder": 1, "commit": 1, "wait": 1}
    assert sequence["right"] and sequence["last of five"]
    assert sequence["first"] == {"compile": 1, "pipeline": 1, "dispatch": 1, **one}
    assert sequence["five"] == {"dispatch": 5, **one}


def test_the_host_writes_behind_queued_commands(sequence):
    queued = {"command buffer": 1, "dispatch": 2, "compute encoder": 2, "blit encoder": 1}
    assert sequence["queued"] == {**queued, "copy": 1}  # and waits for nothing
    assert sequence["before and after"] and sequence["idle"] == {}


def test_copies(sequence):
    assert sequence["taken"] and sequence["dropped"] and sequence["odd"] and sequence["large"]


def test_rules_are_kept_and_nothing_leaks(sequence):
    assert sequence["broken"] == []
    assert sequence["objects"] == {"FakeDevice": 1, "FakeQueue": 1}


REFUSED = r'''
settings = fake.settings
a, b, c = tensor(x), tensor(0 * x), tensor(z)
module = load()
module["add"](a, b, c, 7)
settings.failure, settings.failure_code = b"Insufficient Permission", 7
told["background"] = error(b.numpy)
module["add"](a, b, c, 8)
told["again"] = same(b, expected(8))
settings.max_buffer = 4096
told["a buffer"] = error(tensor, np.zeros(2048, "float32"))
settings.max_buffer = settings.working_set = 1 << 20
told["all memory"] = error(tensor, np.zeros(1 << 18, "float32"))
settings.working_set = settings.max_buffer = 1 << 30
told["small again"] = same(tensor(x), x)

def text(s):
    return len(s).to_bytes(8, "little") + s
def blob(source, *more):
    one = (1).to_bytes(8, "little")
    call = one + b"\x03\x40\x01\0" + one + text(b"threadIdx.x") + bytes(8)
    return text(b"metal") + one + 2 * text(b"k") + call + one + text(b"k") + text(source)
read = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.metal")
kernel = b"""kernel void k(device float* y [[ buffer(0) ]],
  uint blockIdx [[threadgroup_position_in_grid]],
  uint threadIdx [[thread_position_in_threadgroup]]) { %s }"""
metal = b"#include <metal_stdlib>\nusing namespace metal;\n"
def launch(body, threads):
    own = read(blob(metal + kernel % body))
    own["k"](ctypes.c_void_p(b.data_ptr()), threads)
told["compiler"] = error(launch, b"y[0] = nowhere;", 32)
settings.family = 1006
told["old"] = error(launch, b"y[0] = simd_shuffle_xor(y[0], (ushort)1);", 32)
settings.family = 1007
counted()
settings.max_threads = 32
launch(b"y[threadIdx] = 5.0f;", 256)
told["fewer registers"] = same(b, 0 * x + 5) and counted()["pipeline"] == 2
told["too many"] = error(launch, b"y[threadIdx] = 6.0f;", 2048)
launch(b"y[threadIdx] = 6.0f;", 0)
for name, bytes_ in {
    "empty": b"", "format": text(b"metallib"), "cut": text(b"metal") + (1).to_bytes(8, "little"),
    "no source": blob(b""), "axis": blob(b"x").replace(b"threadIdx.x", b"vthread.x.."),
}.items():
    told[name] = error(read, bytes_)
told["listed"] = json.loads(fake.listed())
del a, b, c, module
'''

SAID = {
    "background": r"RuntimeError: Metal: the GPU failed: Insufficient Permission\. An app may not",
    "a buffer": "MemoryError: Metal: no memory for a tensor of 8192 bytes; .* allows 4096 a buffer",
    "all memory": "MemoryError: .* 1048576 bytes.*recommends 1048576 in all",
    "compiler": "RuntimeError: Metal's compiler refuses kernel k: .*'nowhere'",
    "old": "RuntimeError: .*kernel k uses SIMD groups, which GPUs have from A14 and M1",
    "too many": "RuntimeError: Metal makes no pipeline of kernel k: no group has more than 1024",
    "empty": "ValueError: the Metal part of the library is cut short",
    "format": 'ValueError: .*format "metallib"; "metal" is supported',
    "cut": "ValueError: .*is cut short",
    "no source": "ValueError: kernel k has no source",
    "axis": 'ValueError: .*launch parameter "vthread.x.."',
}


@pytest.fixture(scope="module")
def refused(kernels):
    return run(REFUSED, kernels)


@pytest.mark.parametrize("what", SAID)
def test_what_fails_is_said(refused, what):
    assert re.search(SAID[what], refused[what] or "", re.DOTALL), refused[what]


def test_after_an_error_it_goes_on(refused):
    assert refused["again"] and refused["small again"] and refused["fewer registers"]
    assert refused["broken"] == [] and refused["objects"] == {"FakeDevice": 1, "FakeQueue": 1}


def test_the_device_is_listed(refused):
    (device,) = refused["listed"]["devices"]
    assert device["name"] == "Emulated Apple GPU" and "Version 16.0" in device["driver"]
    assert device["memory"] == 1 << 30 and 0 < device["available_memory"] < 1 << 30
    assert not device["software"] and device["shared_memory"] == 32768


ARCHIVE = """
folder = sys.argv[2]
def once():
    a, b, c = tensor(x), tensor(0 * x), tensor(z)
    module = load()
    counted()
    module["add"](a, b, c, 7)
    assert same(b, expected(7))
    found = counted()
    return {name: found.get(name, 0) for name in ("pipeline", "archived pipeline", "serialize")}
told["first"] = once()
told["second"] = once()
(path,) = (os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".metalarchive"))
with open(path, "r+") as file:
    file.write("damage")
told["damaged"] = once()
told["whole"] = once()
fake.settings.version = b"Version 17.0"
told["new system"] = once()
fake.settings.version = b"Version 18.0"
fake.settings.archives = 0
told["no archives"] = once()
told["files"] = sorted(name.partition(".")[2] for name in os.listdir(folder))
"""


def test_pipelines_are_kept_in_an_archive(kernels, tmp_path):
    recorded = run(ARCHIVE, kernels, tmp_path)
    built = {"pipeline": 1, "archived pipeline": 0, "serialize": 1}
    known = {"pipeline": 0, "archived pipeline": 1, "serialize": 0}
    assert recorded["first"] == recorded["damaged"] == recorded["new system"] == built
    assert recorded["second"] == recorded["whole"] == known
    assert recorded["no archives"] == {**built, "serialize": 0}
    assert recorded["files"] == ["metalarchive"] * 2 + ["metalarchive.sum"] * 2
    assert recorded["broken"] == [] and recorded["objects"] == {"FakeDevice": 1, "FakeQueue": 1}


NONE = """
fake.settings.none = 1
told["exists"] = bool(there.exist)
told["error"] = error(tensor, x)
"""


@pytest.mark.nightly
def test_a_machine_without_a_device(kernels):
    recorded = run(NONE, kernels)
    assert not recorded["exists"] and "no Metal device that works" in recorded["error"]
