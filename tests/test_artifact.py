"""The manifest: what is written is read, and whatever does not fit is said, all of it."""

import dataclasses
import json
import platform

import pytest

from wherry import artifact
from wherry.errors import ArtifactError


def write(folder, **changes):
    (folder / "model.so").write_bytes(b"library")
    (folder / "params_shard_0.bin").write_bytes(b"weights")
    manifest = artifact.Manifest(
        schema=artifact.SCHEMA_VERSION,
        key="k",
        interface=artifact.INTERFACE_HASH,
        wherry="0.1.0",
        tvm="0.27.0.post1",
        name="small",
        architecture={"name": "llama", "config": {}},
        quantization="q0f32",
        target={"name": "cpu:x", "kind": "llvm", "host": f"{platform.machine()}-linux-gnu"},
        deployment={"context": 8},
        memory={"weights": 7},
        capabilities=("completion",),
        library="model.so",
        files={n: artifact.record(folder / n) for n in ("model.so", "params_shard_0.bin")},
    )
    manifest = dataclasses.replace(manifest, **changes)
    artifact.write_atomically(folder / artifact.MANIFEST, manifest.to_json())
    return manifest


def test_a_written_manifest_is_read_and_verified(tmp_path):
    manifest = write(tmp_path)
    assert artifact.read_manifest(tmp_path) == manifest
    assert artifact.verify(tmp_path) == manifest


def test_all_that_is_wrong_is_in_one_error(tmp_path):
    write(tmp_path, interface="0" * 16)
    (tmp_path / "model.so").write_bytes(b"LIBRARY")
    (tmp_path / "params_shard_0.bin").unlink()
    with pytest.raises(ArtifactError) as e:
        artifact.verify(tmp_path)
    text = str(e.value)
    assert "interface 0000000000000000" in text
    assert "model.so has changed" in text
    assert "params_shard_0.bin is missing" in text
    assert "wherry compile" in text


def test_a_truncated_file_is_found_without_hashing(tmp_path):
    write(tmp_path)
    (tmp_path / "model.so").write_bytes(b"lib")
    with pytest.raises(ArtifactError, match=r"model\.so has 3 bytes, not 7"):
        artifact.verify(tmp_path, hashes=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: raw.update(schema=99), "schema 99"),
        (lambda raw: raw.pop("files"), "missing field 'files'"),
        (lambda raw: raw.update(extra=1), "unknown field 'extra'"),
    ],
)
def test_another_schema_or_other_fields(tmp_path, change, said):
    write(tmp_path)
    path = tmp_path / artifact.MANIFEST
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(ArtifactError, match=said):
        artifact.verify(tmp_path)


def test_no_manifest_and_a_damaged_one(tmp_path):
    with pytest.raises(ArtifactError, match="not a compiled model"):
        artifact.verify(tmp_path)
    (tmp_path / artifact.MANIFEST).write_text("{")
    with pytest.raises(ArtifactError, match="damaged"):
        artifact.verify(tmp_path)


def test_another_machine(tmp_path):
    write(tmp_path, target={"kind": "llvm", "name": "cpu:s390x", "host": "s390x-linux-gnu"})
    with pytest.raises(ArtifactError, match="compiled for s390x"):
        artifact.verify(tmp_path)
    artifact.verify(tmp_path, machine=False)


def test_missing_cpu_features(monkeypatch):
    monkeypatch.setattr(artifact, "cpu_features", lambda: frozenset({"avx2"}))
    target = {
        "kind": "llvm",
        "host": platform.machine(),
        "cpu": "znver4",
        "features": ["avx2", "avx512f"],
    }
    (problem,) = artifact.machine_problems(target)
    assert "avx512f" in problem and "avx2" not in problem


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    artifact.write_atomically(path, "old")

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(artifact.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        artifact.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
