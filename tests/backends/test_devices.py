"""The devices that plugins list, for `wherry doctor` and for planning memory."""

from __future__ import annotations

import pytest

from wherry.errors import UsageError
from wherry.machine.devices import list_devices, problems
from wherry.machine.plugins import PLUGINS

from ..support.command import python
from ..support.gpu import device


@pytest.mark.gpu
@pytest.mark.parametrize("kind", PLUGINS)
def test_a_device_says_what_it_is(kind):
    there = device(kind)
    first = list_devices(kind)[0]
    assert first.name == there.device_name != ""
    assert first.kind == kind
    assert first.driver and first.threads_per_block >= 64
    assert 1 << 26 <= first.largest_buffer_bytes <= first.memory_bytes
    assert first.available_bytes is None or 0 < first.available_bytes <= first.memory_bytes
    assert there.total_global_memory == first.memory_bytes
    assert problems(kind) == ""


NONE = """
import sys
from wherry.machine.devices import list_devices, problems
print(list_devices(sys.argv[1]))
print(problems(sys.argv[1]))
print([m for m in sys.modules if m.split(".")[0] in ("tvm", "tvm_ffi")])
"""
HIDDEN = {"opencl": "OCL_ICD_VENDORS", "vulkan": "VK_ICD_FILENAMES"}


@pytest.mark.parametrize("kind", PLUGINS)
def test_none_is_an_empty_list(kind, tmp_path):
    device(kind)
    listed, why, imported = python(
        NONE, kind, WHERRY_CACHE=str(tmp_path), **{HIDDEN[kind]: str(tmp_path)}
    ).splitlines()
    assert listed == imported == "[]"
    assert kind == "opencl" or "VK_ERROR_INCOMPATIBLE_DRIVER" in why


def test_other_kinds_are_refused():
    with pytest.raises(UsageError, match="'rocm' are not listed; accepted: cuda, opencl, vulkan"):
        list_devices("rocm")
