"""The core with a tower that TVM compiled, through the C ABI."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from wherry.artifact.manifest import INTERFACE_HASH
from wherry.runtime.core.records import Image

from . import core as abi
from . import tiny_library, tiny_vision

pytestmark = pytest.mark.cpu
ROOT = Path(__file__).parents[2]
PROMPT = [3, 1, 0, 0, 0, 0, 0, 0, 7, 2]  # six tokens of an image from the third one on
FIRST, GRID = 2, (2, 3)
ROWS, DELTA = 6, 3 - 6  # what follows the image continues after its longer side


@pytest.fixture(scope="module")
def core():
    path = ROOT / "build" / "dev" / "libwherry.so"
    assert path.is_file(), "build the core: cmake --preset dev && cmake --build --preset dev"
    return abi.load_library(path)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vision")
    tiny_vision.build_text(folder / "text.so", INTERFACE_HASH)
    tiny_vision.build_tower(folder / "vision.so", INTERFACE_HASH)
    tiny_vision.build_tower(folder / "other.so", INTERFACE_HASH, features=3)
    return folder


@pytest.fixture
def weights(tmp_path):
    values = tiny_vision.make_weights(0)
    tiny_library.write_weights(tmp_path / "weights", values)
    return tmp_path / "weights", values


class Picture:
    """An image of ROWS rows, whose levels stand for themselves less the channel's number."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n = ROWS * tiny_vision.PATCHES_PER_ROW
        self.patches = rng.integers(0, 256, (n, tiny_vision.PATCH)).astype("uint8")
        self.positions = rng.integers(0, 9, (n, tiny_vision.TAPS)).astype("int32")
        self.weights = rng.integers(-2, 3, (n, tiny_vision.TAPS)).astype("float32")
        self.coordinates = rng.integers(0, 5, (n, 2)).astype("int32")
        self.levels = (np.arange(256)[None, :] - np.arange(3)[:, None]).astype("float32")
        self.record = Image(
            first=FIRST,
            rows=ROWS,
            patches=self.patches.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)),
            n_patches=n,
            patch_bytes=tiny_vision.PATCH,
            levels=self.levels.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            positions=self.positions.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            taps=tiny_vision.TAPS,
            position_weights=self.weights.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            coordinates=self.coordinates.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            grid_rows=GRID[0],
            grid_columns=GRID[1],
        )
        self.record.digest[31] = seed

    def params(self):
        return {"images": ctypes.pointer(self.record), "n_images": 1}

    def expected(self, values, n):
        channel = np.arange(tiny_vision.PATCH) // (tiny_vision.PATCH // 3)
        pixels = self.patches - channel.astype("float32")
        places = self.positions, self.weights, self.coordinates
        rows = tiny_vision.features(values, pixels, *places).sum(axis=1).astype(int)
        kept = [token + 7 * DELTA for token in PROMPT]
        kept[:FIRST] = PROMPT[:FIRST]
        for i, row in enumerate(rows.tolist()):
            height, width = divmod(i, GRID[1])
            kept[FIRST + i] = row + 2 * height + 4 * width - 7 * i + 5 * (ROWS - 1 - i)
        return tiny_vision.greedy(values, kept, n, DELTA)


@pytest.mark.parametrize("chunk", [7, 256])
@pytest.mark.parametrize("packed", [True, False])
def test_tokens(core, libraries, weights, tmp_path, chunk, packed):
    folder, values = weights
    options = {"vision": str(libraries / "vision.so")}
    if packed:
        options["pack_dir"] = str(tmp_path / "packed")
    model = abi.Model(core, libraries / "text.so", folder, options)
    config = {"max_batch": 2, "prefill_chunk": chunk}
    results = []
    for seed in (1, 4):
        picture = Picture(seed)
        given = picture.params() | {"temperature": 0, "max_tokens": 12}
        results += model.generate([PROMPT, PROMPT], config, **given)
        assert results[-2:] == [picture.expected(values, 12)] * 2
    without = model.generate([PROMPT], config, temperature=0, max_tokens=12)
    assert without == [tiny_vision.greedy(values, PROMPT, 12)]
    assert len({tuple(tokens) for tokens in [*results, *without]}) == 3
    if packed:  # a file for each library
        assert len(list((tmp_path / "packed").iterdir())) == 2
    model.free()


def _refusal(core, lib, folder, options) -> tuple[int, str]:
    model = abi.Model(core, lib, folder, options)
    with pytest.raises(abi.CoreError) as failure:
        model.generate([PROMPT], **Picture(1).params())
    model.free()
    return failure.value.status, str(failure.value)


def test_a_tower_is_opened_at_the_first_image(core, libraries, weights, tmp_path):
    folder, values = weights
    options = {"vision": str(tmp_path / "none.so")}
    model = abi.Model(core, libraries / "text.so", folder, options)
    tokens = model.generate([PROMPT], temperature=0, max_tokens=3)
    assert tokens == [tiny_vision.greedy(values, PROMPT, 3)]
    model.free()
    status, text = _refusal(core, libraries / "text.so", folder, options)
    assert status == abi.NOT_FOUND
    assert "no compiled library" in text


def test_wrong_towers_are_named(core, libraries, weights):
    folder, _ = weights
    lib = libraries / "text.so"
    assert _refusal(core, lib, folder, {}) == (
        abi.INVALID_ARGUMENT,
        'tiny was loaded without its tower: give its library as "vision"',
    )
    status, text = _refusal(core, lib, folder, {"vision": str(lib)})
    assert status == abi.INCOMPATIBLE
    assert 'the entries of a tower must be ["see"]' in text
    status, text = _refusal(core, lib, folder, {"vision": str(libraries / "other.so")})
    assert status == abi.INCOMPATIBLE
    assert "the tower gives rows of 3 elements, tiny takes 2" in text
    with pytest.raises(abi.CoreError, match='entry "see"'):
        abi.Model(core, libraries / "vision.so", folder)
