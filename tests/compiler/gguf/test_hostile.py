"""Files that lie: a clear error, at once, and no memory for what is not there."""

from __future__ import annotations

import random
import resource
import struct
import time
from types import SimpleNamespace

import numpy as np
import pytest

from wherry.compiler.checkpoint.gguf.architectures.table import family_of
from wherry.compiler.checkpoint.gguf.folder import unfold
from wherry.compiler.checkpoint.gguf.header import read_header
from wherry.compiler.checkpoint.gguf.opening import open_gguf
from wherry.errors import ModelError

from . import writing

MUTANTS = 500


def read_all(file, cache):
    """Everything that a conversion reads."""
    unfold(file, cache)
    checkpoint = open_gguf(file)
    for name in checkpoint.tensors:
        checkpoint.read(name)


def mutant(data: bytes, header: int, rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    at = rng.randrange(header)
    if kind == 0:
        return data[: rng.randrange(len(data))]
    if kind == 1:  # a size of eight bytes
        size = rng.choice([0, 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1, rng.getrandbits(64)])
        return data[:at] + struct.pack("<Q", size) + data[at + 8 :]
    if kind == 2:
        return data[:at] + rng.randbytes(rng.randrange(1, 32)) + data[at + 1 :]
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def test_mutants(tmp_path):
    file = writing.llama(tmp_path / "m.gguf")
    data = file.read_bytes()
    header = min(t.offset for t in read_header(file).tensors)
    refused, begin = 0, time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(MUTANTS):
        path = tmp_path / "mutant.gguf"
        path.write_bytes(mutant(data, header, random.Random(seed)))
        try:
            read_all(path, tmp_path / f"cache{seed}")
        except ModelError as e:
            refused += 1
            assert str(path) in str(e) or "file" in str(e), f"{seed}: {e}"
    # Letters in the names of spare tokens may be others.
    assert MUTANTS / 4 < refused < MUTANTS
    assert time.monotonic() - begin < 120
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400 << 10, f"{grown} kB"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "ends at byte 0"),
        (b"GGML" + bytes(60), "begins with b'GGML'"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(60), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1; versions 2 and 3"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "claims 1152921504606846976 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "values of metadata"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62) + bytes(40), "ends at byte"),
    ],
)
def test_what_is_wrong_is_said(data, why, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=why):
        read_header(path)


def test_a_missing_part(tmp_path):
    file = writing.llama(tmp_path / "m-00001-of-00003.gguf")
    with pytest.raises(ModelError, match=r"one of 3 files, and 2 are not(.|\n)*m-00003-of-00003"):
        open_gguf(file)


def test_a_tensor_twice(tmp_path):
    first = writing.llama(tmp_path / "m-00001-of-00002.gguf")
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(first.read_bytes())
    with pytest.raises(ModelError, match="tensors of another file"):
        open_gguf(first)


def test_surplus_tensors_are_listed(tmp_path):
    tensors = {"x.weight": np.ones(3, np.float32)}
    file = writing.llama(tmp_path / "m.gguf", layers=1, tensors=tensors)
    with pytest.raises(ModelError, match=r"x\.weight \[3\], which llama does not have"):
        open_gguf(file)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (
            {
                "general.type": "adapter",
                "adapter.type": "lora",
                "general.base_model.0.name": "Boat",
            },
            r"an adapter \(LoRA\) of 'Boat'",
        ),
        ({"general.architecture": "clip", "general.type": "mmproj"}, "reads images or sound"),
        ({"general.architecture": "clip"}, "reads images or sound"),
        ({"general.type": "imatrix"}, "an importance matrix"),
        ({"general.architecture": "sail"}, "the architecture 'sail'"),
    ],
)
def test_files_that_are_no_model_are_named(metadata, said):
    with pytest.raises(ModelError, match=said):
        family_of(SimpleNamespace(metadata=metadata, path="x.gguf"))
