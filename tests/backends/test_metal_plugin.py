"""The Metal plugin on Objective-C's run time: sequence of calls, memory, errors, its archive."""

from __future__ import annotations

import json

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
                        x[b * THREADS + t]
                        + z[0] * T.cast(n, "float32")
                        + T.cast(k, "float32")
                    )

    target = Target(dict(find("metal").device), host={"kind": "llvm"})
    path = tmp_path_factory.mktemp("metal") / "add.so"
    tvm.compile(tvm.IRModule({"add": add}), target=target).export_library(str(path))
    return path


START = """
import gc, json, sys
import numpy as np
from tests.support import fake_metal
fake = fake_metal.opened(sys.argv[2] if len(sys.argv) > 2 else "")
import tvm, tvm_ffi
there = tvm.device("metal", 0)
x = np.arange(256, dtype="float32")
z = np.array([10, 1, 1], "float32")
expected = x + 3 * z[0] + 7
def tensor(array):
    return tvm.runtime.tensor(array, there)
def load():
    return tvm_ffi.load_module(sys.argv[1], keep_module_alive=False)
def told(**more):
    print(json.dumps({"broken": fake.broken(), "events": fake.events(), "objects": fake.objects(), **more}))
"""


def run(script, *arguments, **env):
    """What the script told at its end."""
    return json.loads(fake_metal.python(START + script, *map(str, arguments), **env).splitlines()[-1])


ADD = """
a, b, c = tensor(x), tensor(0 * x), tensor(z)
module = load()
module["add"](a, b, c, 7)
right = bool(np.array_equal(b.numpy(), expected))
del a, b, c, module
gc.collect()
told(right=right)
"""


def test_a_kernel(kernels):
    found = run(ADD, kernels)
    assert found["right"] and found["broken"] == []
    assert found["events"]["dispatch"] == 1 and found["events"]["command buffer"] == 1
    assert found["objects"] == {"FakeDevice": 1, "FakeQueue": 1}
