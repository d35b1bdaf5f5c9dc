"""The Vulkan plugin: what it refuses, its memory, copies of any size."""

from __future__ import annotations

import resource
import struct

import numpy as np
import pytest
import tvm
import tvm_ffi

from wherry.machine.devices import list_devices

from ..support.gpu import device

pytestmark = pytest.mark.gpu
ONE = struct.pack("<Q", 1)


@pytest.fixture(scope="module")
def there():
    return device("vulkan")


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def blob(code: bytes, extras: tuple[int, ...]) -> bytes:
    numbers = struct.pack(f"<Q{len(extras)}i", len(extras), *extras)
    return text(b"wherry-spirv-2") + ONE + text(b"k") + 2 * bytes(8) + numbers + text(code)


def test_damaged_libraries_are_refused(there):
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.vulkan")
    magic = struct.pack("<I", 0x07230203)
    for bad, words in (
        (b"", "cut short"),
        (text(b"cl"), 'format "cl"'),
        (blob(magic, (0, 0, 1, 1, 1))[:-2], "cut short"),
        (blob(b"SPIR", (0, 0, 1, 1, 1)), "kernel k is not SPIR-V"),
        (blob(magic + b"!", (0, 0, 1, 1, 1)), "kernel k is not SPIR-V"),
        (blob(magic, (0, 0)), "kernel k has 2 numbers; 5 are read"),
    ):
        with pytest.raises(ValueError, match=words):
            load(bad)


def test_limits_of_the_device_are_in_the_error(there):
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.vulkan")
    code = struct.pack("<I", 0x07230203)
    module = load(blob(code, (1 << 30, 0, 1 << 20, 1, 1)))
    with pytest.raises(RuntimeError) as error:
        module["k"]()
    words = str(error.value)
    assert "kernel k takes 1048576 threads a group" in words and "--target vulkan:64" in words
    assert "1073741824 bytes of shared memory" in words


def test_copies_keep_every_byte(there):
    """Also more than one batch stages, sizes that are no whole words, and none."""
    for shape in ((1,), (7, 3), (0, 5), (3000, 1001)):
        for dtype in ("float32", "uint8"):
            array = np.random.default_rng(1).integers(0, 255, shape).astype(dtype)
            again = tvm.runtime.tensor(array, there).copyto(there)
            assert np.array_equal(again.numpy(), array)


def test_freed_memory_is_used_again(there):
    """A driver on the CPU takes memory of this process; of a GPU, more is used than it has."""
    device = list_devices("vulkan")[0]
    array = np.ones((16, 1 << 20), "float32")

    def use(times):
        for i in range(times):
            assert tvm.runtime.tensor(array * i, there).numpy()[3, 5] == i

    if device.software:
        use(4)
        before = peak_memory()
        use(20)
        assert peak_memory() - before < 4 * array.nbytes
    else:
        use(device.memory_bytes // array.nbytes + 2)


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_tensor_beyond_the_limit_names_the_fix(there):
    most = list_devices("vulkan")[0].largest_buffer_bytes
    with pytest.raises(MemoryError, match=r"maxStorageBufferRange.*--max-batch"):
        tvm.runtime.empty((most + 4,), "uint8", there)
