"""The core with a library that TVM compiled, through the C ABI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wherry.artifact.manifest import INTERFACE_HASH

from ..support.command import SRC
from . import core as abi
from . import tiny_library

pytestmark = pytest.mark.cpu
ROOT = Path(__file__).parents[2]
PROMPTS = [[3], [1, 2, 3, 4, 5, 6, 7], [9] * 21, [15, 0, 15]]


@pytest.fixture(scope="module")
def library_path():
    path = ROOT / "build" / "dev" / "libwherry.so"
    assert path.is_file(), "build the core: cmake --preset dev && cmake --build --preset dev"
    return path


@pytest.fixture(scope="module")
def core(library_path):
    return abi.load_library(library_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("lib") / "tiny.so"
    tiny_library.build(path, INTERFACE_HASH)
    return path


@pytest.fixture
def weights(tmp_path):
    values = tiny_library.make_weights(0)
    tiny_library.write_weights(tmp_path / "weights", values)
    return tmp_path / "weights", values


def expected(values):
    return [tiny_library.greedy(values, prompt, 12) for prompt in PROMPTS]


@pytest.mark.parametrize("chunk", [4, 256])
def test_tokens(core, compiled, weights, chunk):
    folder, values = weights
    model = abi.Model(core, compiled, folder)
    config = {"max_batch": 3, "prefill_chunk": chunk}
    assert model.generate(PROMPTS, config, temperature=0, max_tokens=12) == expected(values)
    assert model.metadata()["name"] == "tiny"
    model.free()


def test_packed_weights_are_written_once_and_mapped(core, compiled, weights, tmp_path):
    folder, values = weights
    options = {"pack_dir": str(tmp_path / "packed"), "threads": 2}
    for _ in range(2):
        model = abi.Model(core, compiled, folder, options)
        assert model.generate(PROMPTS, temperature=0, max_tokens=12) == expected(values)
        files = list((tmp_path / "packed").iterdir())
        assert [f.name.startswith("packed-") for f in files] == [True]
        maps = Path("/proc/self/maps").read_text()
        assert str(files[0]) in maps
        model.free()
        assert str(files[0]) not in Path("/proc/self/maps").read_text()
        data = bytearray(files[0].read_bytes())
        assert data[256 : 256 + 1024] == (2 * values["w"]).tobytes()
        assert data[256 + 1024 : 256 + 1024 + 64] == (values["a"] - values["b"]).tobytes()
        written = files[0].stat().st_mtime_ns
    assert files[0].stat().st_mtime_ns == written


def test_the_second_load_does_not_pack(core, compiled, weights, tmp_path):
    folder, values = weights
    options = {"pack_dir": str(tmp_path)}
    abi.Model(core, compiled, folder, options).free()
    (packed,) = tmp_path.glob("packed-*.bin")
    changed = {**values, "w": -values["w"]}
    data = bytearray(packed.read_bytes())
    data[256 : 256 + 1024] = (2 * changed["w"]).tobytes()
    packed.write_bytes(data)
    # What a load uses is the file, not the stored tensors. Unchecked, because it was seen before.
    model = abi.Model(core, compiled, folder, {**options, "check_weights": 0})
    assert model.generate(PROMPTS, temperature=0, max_tokens=12) == expected(changed)
    model.free()
    packed.write_bytes(data[:-1])  # cut: it is made again
    model = abi.Model(core, compiled, folder, options)
    assert model.generate(PROMPTS, temperature=0, max_tokens=12) == expected(values)
    model.free()


def test_other_weights_get_another_file(core, compiled, weights, tmp_path):
    folder, _ = weights
    options = {"pack_dir": str(tmp_path)}
    abi.Model(core, compiled, folder, options).free()
    other = tiny_library.make_weights(1)
    tiny_library.write_weights(folder, other)
    model = abi.Model(core, compiled, folder, options)
    assert model.generate(PROMPTS, temperature=0, max_tokens=12) == expected(other)
    assert len(list(tmp_path.glob("packed-*.bin"))) == 2
    model.free()


def test_all_that_does_not_fit_is_named(core, compiled, weights):
    folder, values = weights
    del values["a"]
    values["scale"] = values["scale"].astype("float16")
    tiny_library.write_weights(folder, values)
    with pytest.raises(abi.CoreError) as error:
        abi.Model(core, compiled, folder)
    assert error.value.status == abi.INCOMPATIBLE
    assert "a is missing" in str(error.value)
    assert "scale is float16 [1]; the library takes float32 [1]" in str(error.value)


def test_another_interface_is_refused(core, weights, tmp_path):
    tiny_library.build(tmp_path / "old.so", "0123456789abcdef")
    with pytest.raises(abi.CoreError, match='interface "0123456789abcdef"') as error:
        abi.Model(core, tmp_path / "old.so", weights[0])
    assert error.value.status == abi.INCOMPATIBLE


def test_missing_files(core, compiled, weights, tmp_path):
    with pytest.raises(abi.CoreError, match="no compiled library") as error:
        abi.Model(core, tmp_path / "none.so", weights[0])
    assert error.value.status == abi.NOT_FOUND
    with pytest.raises(abi.CoreError, match=r"tensor-cache\.json") as error:
        abi.Model(core, compiled, tmp_path / "none")
    assert error.value.status == abi.NOT_FOUND


def test_a_library_that_is_no_model(core, library_path, weights):
    with pytest.raises(abi.CoreError) as error:
        abi.Model(core, library_path, weights[0])
    assert error.value.status == abi.INCOMPATIBLE


def test_without_tvms_python_package(library_path, compiled, weights):
    """libtvm_ffi.so and libtvm_runtime.so are all that a process needs."""
    folder, values = weights
    program = (
        "import json, sys; from pathlib import Path; import core as abi\n"
        f"model = abi.Model(abi.load_library(Path({str(library_path)!r})), "
        f"{str(compiled)!r}, {str(folder)!r})\n"
        f"tokens = model.generate({PROMPTS}, temperature=0, max_tokens=12)\n"
        "maps = Path('/proc/self/maps').read_text()\n"
        "assert 'tvm' not in sys.modules and 'libtvm_compiler' not in maps\n"
        "assert 'libtvm_runtime_extra' not in maps\n"
        "print(json.dumps(tokens))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{SRC}"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected(values)
