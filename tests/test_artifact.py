"""The manifest: what is written is read, and whatever does not fit is said, all of it."""

import json
import platform
import sys

import pytest

from wherry.artifact import manifest as artifact
from wherry.artifact.variants import library_for
from wherry.base import temporary
from wherry.errors import ArtifactError
from wherry.machine import cpu

from .support.artifacts import CONTENT, edit, write


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


def test_a_truncated_file_is_detected_without_hashing(tmp_path):
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
        (lambda raw: raw.update(files={}), "model.so is not listed"),
        (lambda raw: raw.update(library="other.so"), "other.so is not listed"),
        (
            lambda raw: raw["target"].update(
                variants=[{"name": "v", "features": [], "library": "v.so"}]
            ),
            "v.so is not listed",
        ),
        (lambda raw: raw["files"].pop("tensor-cache.json"), "tensor-cache.json is not listed"),
        (lambda raw: raw["files"].pop("params_shard_0.bin"), "does not list it"),
        (lambda raw: raw["files"].update({"../x": raw["files"]["model.so"]}), "pattern"),
        (lambda raw: raw["files"]["model.so"].update(size=-1), "files.model.so.size"),
        (lambda raw: raw["files"]["model.so"].pop("sha256"), "files.model.so.sha256"),
        (lambda raw: raw.update(capabilities=7), "capabilities"),
        (lambda raw: raw.update(deployment={"context": 1.5}), "deployment.context"),
        (lambda raw: raw.update(deployment={"context": 0}), "deployment.context"),
        (lambda raw: raw["deployment"].update(kv_dtype="int3"), "deployment.kv_dtype: expected"),
        (lambda raw: raw["deployment"].update(activations=8), "deployment.activations: expected"),
        (lambda raw: raw.update(files=[]), "files: "),
        (lambda raw: raw.update(library=["model.so"]), "library: "),
        (lambda raw: raw.update(memory={"weights": "7"}), "memory.weights"),
        (lambda raw: raw.update(target="cpu"), "target: "),
        (lambda raw: raw["target"].pop("name"), "target.name"),
        (lambda raw: raw["target"].update(features="avx2"), "target.features"),
        (lambda raw: raw["target"].update(variants=[7]), "target.variants.0"),
        (lambda raw: raw.update(architecture=json.loads("[" * 300 + "]" * 300)), "nest"),
    ],
)
def test_another_schema_or_other_fields(tmp_path, change, said):
    write(tmp_path)
    edit(tmp_path, change)
    with pytest.raises(ArtifactError, match=said):
        artifact.verify(tmp_path)


def test_all_that_does_not_fit_is_in_one_error(tmp_path):
    write(tmp_path)
    edit(tmp_path, lambda raw: raw.update(library=1, capabilities={}, memory=None, extra=2))
    with pytest.raises(ArtifactError) as e:
        artifact.read_manifest(tmp_path)
    for field in ("library: ", "capabilities: ", "memory: ", "unknown field 'extra'"):
        assert field in str(e.value)


def test_a_flip_of_any_byte_of_the_manifest_is_seen(tmp_path):
    write(tmp_path)
    path = tmp_path / artifact.MANIFEST
    text = path.read_bytes()
    for i in range(len(text)):
        path.write_bytes(text[:i] + bytes([text[i] ^ 1]) + text[i + 1 :])
        with pytest.raises(ArtifactError):
            artifact.read_manifest(tmp_path)


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
    monkeypatch.setattr(cpu, "cpu_features", lambda: frozenset({"avx2"}))
    target = {
        "kind": "llvm",
        "host": platform.machine(),
        "cpu": "znver4",
        "features": ["avx2", "avx512f"],
    }
    (problem,) = cpu.machine_problems(target)
    assert "avx512f" in problem and "avx2" not in problem


@pytest.mark.parametrize("allowed", [True, False])
def test_matrix_units_need_permission(monkeypatch, allowed):
    monkeypatch.setattr(cpu, "cpu_flags", lambda: frozenset({"avx2", "amx_bf16", "amx_tile"}))
    monkeypatch.setattr(cpu, "_allows_amx", lambda: allowed)
    assert cpu.cpu_features() == {"avx2"} | (cpu.AMX if allowed else set())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX is x86's")
@pytest.mark.skipif(sys.platform != "linux", reason="the system call is Linux's")
def test_this_system_permits_or_refuses_matrix_units():
    """It refuses where the CPU has none."""
    assert isinstance(cpu._allows_amx(), bool)
    assert not cpu._allows_amx() or cpu.cpu_flags() >= cpu.AMX


V3 = {"avx2", "fma"}
V4 = V3 | {"avx512f", "avx512bw"}


@pytest.mark.parametrize(
    ("has", "library"),
    [
        (V3, "model.so"),
        (V3 | {"avx_vnni"}, "v3vnni.so"),
        (V4, "v4.so"),
        (V4 | {"avx_vnni"}, "v4.so"),
        (V4 | {"avx512_vnni", "sse4a"}, "v4vnni.so"),
        (V4 - {"avx512bw"} | {"avx512_vnni"}, "model.so"),
        (frozenset(), "model.so"),
    ],
)
def test_the_best_library_that_a_machine_runs(tmp_path, has, library):
    levels = {
        "v3vnni.so": V3 | {"avx_vnni"},
        "v4.so": V4,
        "v4vnni.so": V4 | {"avx512_vnni"},
    }
    variants = [{"name": n, "library": n, "features": sorted(f)} for n, f in levels.items()]
    target = {"name": "cpu", "kind": "llvm", "features": sorted(V3), "variants": variants}
    files = {n: artifact.FileRecord(size=1, sha256="0" * 64) for n in (*levels, *CONTENT)}
    write(tmp_path, target=target, files=files)
    assert library_for(artifact.read_manifest(tmp_path), frozenset(has)) == library


def test_a_folder_with_one_library(tmp_path):
    assert library_for(write(tmp_path), frozenset(V4)) == "model.so"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    temporary.write_atomically(path, "old")

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(temporary.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        temporary.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
