"""Reading safetensors: rows, dtypes, and what is wrong with a folder."""

import json
import random

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from wherry.compiler.checkpoint.formats import open_weights
from wherry.errors import ModelError

from ..fuzz import mutate

A = np.arange(60, dtype="f4").reshape(5, 12)


def sharded(folder, **tensors):
    weight_map = {}
    for i, (name, tensor) in enumerate(tensors.items()):
        file = f"model-{i}.safetensors"
        save_file({name: tensor}, folder / file)
        weight_map[name] = file
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_rows_are_read_as_float32(tmp_path, dtype):
    save_file({"a": A.astype(dtype), "s": np.array(2, dtype)}, tmp_path / "model.safetensors")
    checkpoint = open_weights(tmp_path)
    assert checkpoint.shapes == {"a": (5, 12), "s": ()}
    assert checkpoint.read("a").dtype == np.float32
    np.testing.assert_array_equal(checkpoint.read("a"), A)
    np.testing.assert_array_equal(checkpoint.read("a", 1, 4), A[1:4])
    assert checkpoint.read("a", 2, 2).shape == (0, 12)
    assert checkpoint.read("s") == 2


def test_shards_are_one_checkpoint(tmp_path):
    checkpoint = open_weights(sharded(tmp_path, a=A, b=A * 2))
    assert len(checkpoint.files) == 2
    np.testing.assert_array_equal(checkpoint.read("b", 4), A[4:] * 2)


def test_missing_shards_are_listed(tmp_path):
    sharded(tmp_path, a=A, b=A, c=A)
    for i in (0, 2):
        (tmp_path / f"model-{i}.safetensors").unlink()
    with pytest.raises(ModelError, match="lacks 2 of the 3 files") as caught:
        open_weights(tmp_path)
    assert "- model-0.safetensors\n  - model-2.safetensors" in str(caught.value)


def test_an_index_that_does_not_fit_is_refused(tmp_path):
    index = sharded(tmp_path, a=A, b=A) / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": {"a": "model-0.safetensors", "z": "model-1.safetensors"}})
    )
    with pytest.raises(ModelError, match=r"z is not in model-1\.safetensors"):
        open_weights(tmp_path)
    save_file({"a": A}, tmp_path / "model-1.safetensors")
    with pytest.raises(ModelError, match="a is in model-1.safetensors and in another file"):  # noqa: RUF043
        open_weights(tmp_path)
    for name in ("../secret.safetensors", "", "..", "a" * 5000, "a\0", "\ud800"):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(ModelError, match="not in its folder"):
            open_weights(tmp_path)
    index.write_text("[]")
    with pytest.raises(ModelError, match="no readable weight_map"):
        open_weights(tmp_path)


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_a_cut_file_is_noticed(tmp_path, keep):
    path = tmp_path / "model.safetensors"
    save_file({"a": A}, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match="download it again"):
        open_weights(tmp_path)


def test_a_file_cut_after_it_was_opened_is_noticed(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": A}, path)
    checkpoint = open_weights(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ModelError, match="ends inside a"):
        checkpoint.read("a")


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [5, 12], "data_offsets": [0, 100]},
        {"dtype": "F32", "shape": [-5, -12], "data_offsets": [0, 240]},
        {"dtype": "F32", "shape": [5, 12]},
        {"dtype": "F32", "shape": "big", "data_offsets": [0, 240]},
        7,
        {"dtype": "F32", "shape": [5, 12.0], "data_offsets": [0, 240]},
        {"dtype": "F32", "shape": [5, 12], "data_offsets": [0, 2**70]},
        {"dtype": "F32", "shape": [5, 11], "data_offsets": [20, 240]},
        {"dtype": "F32", "shape": [True, 60], "data_offsets": [0, 240]},
    ],
)
def test_a_damaged_header_is_refused(tmp_path, entry):
    header = json.dumps({"a": entry}).encode()
    data = len(header).to_bytes(8, "little") + header + bytes(240)
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match="damaged header"):
        open_weights(tmp_path)


def test_names_that_occur_twice_are_refused(tmp_path):
    """Readers differ in which of the two they take."""
    entry = json.dumps({"dtype": "F32", "shape": [5, 12], "data_offsets": [0, 240]})
    header = f'{{"a": {entry}, "a": {entry}}}'.encode()
    data = len(header).to_bytes(8, "little") + header + bytes(240)
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=r"damaged header.*'a' occurs twice"):
        open_weights(tmp_path)


def test_trailing_bytes_gaps_and_overlaps_are_refused(tmp_path):
    """As the safetensors library does: something is wrong with whatever wrote the file."""
    path = tmp_path / "model.safetensors"
    save_file({"a": A, "b": A}, path)
    file = path.read_bytes()
    path.write_bytes(file + b"x")
    with pytest.raises(ModelError, match=rf"has {len(file) + 1} bytes instead of {len(file)}"):
        open_weights(tmp_path)
    for start in (200, 280):
        entries = {
            "a": {"dtype": "F32", "shape": [60], "data_offsets": [0, 240]},
            "b": {"dtype": "F32", "shape": [60], "data_offsets": [start, start + 240]},
        }
        header = json.dumps(entries).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(start + 240))
        with pytest.raises(ModelError, match=f"b begins at byte .*{start + len(header) + 8}"):
            open_weights(tmp_path)


def test_nothing_is_read_that_the_library_refuses(tmp_path):
    """Our reader is there because the library's maps the file: cut meanwhile, that is a SIGBUS."""
    path = tmp_path / "model.safetensors"
    save_file({"a": A, "b": A.astype("f2"), "s": np.array(2, "f4")}, path)
    contents = path.read_bytes()
    length = int.from_bytes(contents[:8], "little")
    read = 0
    for n in range(600):
        rng = random.Random(n)
        header = (mutate.rewritten if n % 2 else mutate.damaged)(contents[8 : 8 + length], rng)
        path.write_bytes(len(header).to_bytes(8, "little") + header + contents[8 + length :])
        try:
            checkpoint = open_weights(tmp_path)
            checkpoint.require_floats(checkpoint.tensors)
        except ModelError:
            continue
        read += 1
        with safe_open(path, "np") as expected:
            assert {k: tuple(expected.get_slice(k).get_shape()) for k in expected.keys()} == dict(
                checkpoint.shapes
            ), n
    assert read > 2


def test_a_deep_header_is_refused(tmp_path):
    for text in (b'{"a":' * 50_000, b'{"__metadata__": ' + b"[" * 200 + b"]" * 200 + b"}"):
        data = len(text).to_bytes(8, "little") + text
        (tmp_path / "model.safetensors").write_bytes(data)
        with pytest.raises(ModelError, match="damaged header"):
            open_weights(tmp_path)


def test_other_dtypes_are_listed_if_they_are_needed(tmp_path):
    save_file({"a": A, "b": A.astype("i4"), "c": A.astype("f8")}, tmp_path / "model.safetensors")
    checkpoint = open_weights(tmp_path)
    checkpoint.require_floats(["a", "a"])
    with pytest.raises(ModelError, match="use the original model") as caught:
        checkpoint.require_floats(["a", "b", "c"])
    assert "- b: I32\n  - c: F64" in str(caught.value)


def test_other_formats_are_named(tmp_path):
    with pytest.raises(ModelError, match="no weights at all"):
        open_weights(tmp_path)
    (tmp_path / "model.gguf").write_bytes(b"")
    with pytest.raises(ModelError, match=r"it has model\.gguf"):
        open_weights(tmp_path)


def test_the_fingerprint_changes_with_the_files(tmp_path):
    import os

    path = tmp_path / "model.safetensors"
    save_file({"a": A}, path)
    first = open_weights(tmp_path).fingerprint
    assert open_weights(tmp_path).fingerprint == first
    os.utime(path, ns=(1, 1))
    touched = open_weights(tmp_path).fingerprint
    save_file({"b": A}, path)
    os.utime(path, ns=(1, 1))
    assert len({first, touched, open_weights(tmp_path).fingerprint}) == 3
