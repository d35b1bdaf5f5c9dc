"""`wherry run` ends with the right answer whatever byte of the cache is flipped."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from wherry.artifact import integrity
from wherry.runtime import MLCEngine

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of its own, with the demo model and its packed weights."""
    folder = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHERRY_CACHE", str(folder))
        yield folder, answer()


def answer() -> str:
    """As `wherry run demo` does, with nothing made beforehand.

    In this scheme the norms are used as they are stored; all else is packed.
    """
    with MLCEngine("demo", target="cpu", quant="q4f32_1", threads=2) as engine:
        messages = [{"role": "user", "content": "Tell me a story about a fox."}]
        reply = engine.chat.completions.create(messages=messages, temperature=0, max_tokens=12)
    return str(reply.choices[0].message.content)


def flip(path: Path, random: random.Random) -> None:
    """A bit, in place: hard links change with it. Every other time the file's own time stays."""
    at = random.randrange(path.stat().st_size)
    before = path.stat()
    with path.open("r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1 << random.randrange(8)]))
    if random.random() < 0.5:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def files(cache: Path) -> list[Path]:
    """All that have a content; locks have none."""
    return sorted(p for p in cache.rglob("*") if p.is_file() and p.stat().st_size)


@pytest.mark.nightly
def test_each_file_that_is_built_again_without_compiling(cache, caplog):
    folder, expected = cache
    random_ = random.Random(8)
    names = [p.relative_to(folder) for p in files(folder)]
    assert {n.parts[0] for n in names} == {"models", "weights", "packed", "verified"}
    for name in names:
        if name.name in ("model.so", "wherry.json") or not (folder / name).exists():
            continue
        caplog.clear()
        flip(folder / name, random_)
        assert answer() == expected, name
        if name.parts[0] in ("models", "packed"):
            assert "built again" in caplog.text, name


@pytest.mark.nightly
def test_packed_weights_anywhere(cache, caplog):
    folder, expected = cache
    random_ = random.Random(9)
    for _ in range(8):
        caplog.clear()
        (path,) = (folder / "packed").glob("*/*.bin")
        content = path.read_bytes()
        flip(path, random_)
        assert answer() == expected
        assert path.read_bytes() == content or "packed" not in caplog.text  # a gap
    path.write_bytes(content[:-100])
    assert answer() == expected


def test_library_and_manifest(cache, caplog):
    folder, expected = cache
    random_ = random.Random(10)
    for name in ("model.so", "wherry.json"):
        (path,) = (folder / "models").glob(f"*/{name}")
        flip(path, random_)
    assert answer() == expected
    assert "wherry.json is damaged" in caplog.text


def test_weights_that_change_without_a_trace(cache, caplog, monkeypatch):
    """As on a failing disk: no time changes. After a restart it is found as it is mapped."""
    folder, expected = cache
    (path,) = (folder / "models").glob("*/params_shard_0.bin")
    (shard,) = json.loads((path.parent / "tensor-cache.json").read_text())["records"]
    (norm,) = (r for r in shard["records"] if r["name"] == "model.norm.weight")
    real = integrity._identity
    known = real(path)
    with path.open("r+b") as f:
        f.seek(norm["byteOffset"])
        f.write(b"\x42\x42")
    os.utime(path, ns=(known[2], known[2]))
    monkeypatch.setattr(integrity, "_identity", lambda p: known if p.samefile(path) else real(p))
    monkeypatch.setattr(integrity, "_boot", lambda: "another")
    assert answer() == expected
    assert "model.norm.weight" in caplog.text and "cache is read through" in caplog.text
