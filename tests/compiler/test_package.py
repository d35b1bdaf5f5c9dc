"""What a compilation leaves of a folder that was there, and what it repairs."""

from __future__ import annotations

import json

import pytest

from wherry.artifact import manifest as artifact
from wherry.compiler import package
from wherry.errors import UsageError

from ..support import artifacts


@pytest.fixture
def compiled(tmp_path):
    """A compiled folder, newly made, with a library of its own name."""
    folder = tmp_path / "made"
    folder.mkdir()
    artifacts.write(folder)
    (folder / "model.v3.so").write_bytes(b"new")
    (folder / "model.so").write_bytes(b"LIBRARY")
    files = {p.name: artifact.record(p) for p in folder.iterdir() if p.name != artifact.MANIFEST}
    artifacts.write(folder, files=files)
    (folder / "model.so").write_bytes(b"LIBRARY")
    return folder


@pytest.fixture
def older(tmp_path):
    folder = tmp_path / "older"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("of the older one")
    artifacts.write(folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "model.safetensors").write_text("mine, too")
    (folder / "pictures").mkdir()
    (folder / "pictures" / "fox.png").write_bytes(b"png")
    return folder


def names(folder):
    return {p.name for p in folder.iterdir()}


def test_only_our_own_files_go(compiled, older):
    expected = names(compiled)
    package._put(compiled, older)
    assert names(older) == expected | {"notes.txt", "model.safetensors", "pictures"}
    assert (older / "pictures" / "fox.png").read_bytes() == b"png"
    artifact.verify(older, machine=False)
    assert (older / "model.so").read_bytes() == b"LIBRARY"


def test_a_folder_that_is_not_there_is_created(compiled, tmp_path):
    package._put(compiled, tmp_path / "new")
    artifact.verify(tmp_path / "new", machine=False)


def test_files_of_others_are_not_written_over(compiled, older):
    (older / "model.v3.so").write_text("mine")
    with pytest.raises(UsageError, match=r"in the way.*\n.*model\.v3\.so\nMove them"):
        package._put(compiled, older)
    assert (older / "model.v3.so").read_text() == "mine"
    artifact.read_manifest(older)


def test_a_damaged_manifest_keeps_nothing_from_being_compiled_again(compiled, older):
    (older / artifact.MANIFEST).write_text("{")
    package._put(compiled, older)
    artifact.read_manifest(older)
    assert (older / "notes.txt").exists()


def test_a_folder_left_half_way_is_damaged(compiled, older, monkeypatch):
    replaced = []
    real = package.Path.replace

    def replace(path, target):
        replaced.append(path.name)
        if len(replaced) == 3:
            raise KeyboardInterrupt
        return real(path, target)

    monkeypatch.setattr(package.Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        package._put(compiled, older)
    assert artifact.file_problems(older, artifact.read_manifest(older).files)


@pytest.fixture
def weights(tmp_path):
    """What a conversion leaves, of the files of `artifacts.CONTENT` that are weights."""
    folder = tmp_path / "weights"
    folder.mkdir()
    for name, content in artifacts.CONTENT.items():
        if name != "model.so":
            (folder / name).write_bytes(content)
    files = {p.name: {"size": r.size, "sha256": r.sha256}
             for p in folder.iterdir() for r in [artifact.record(p)]}  # fmt: skip
    marker = {"schema": package.files_of.__globals__["SCHEMA_VERSION"], "files": files}
    marker["digest"] = artifact.digest(marker)
    (folder / "wherry-weights.json").write_text(json.dumps(marker))
    return folder


def test_damaged_weights_are_taken_again(older, weights):
    (older / "params_shard_0.bin").write_bytes(b"WEIGHTS")
    manifest = artifact.read_manifest(older)
    assert package.repair(older, manifest, weights, ["params_shard_0.bin"])
    assert not artifact.file_problems(older, manifest.files)
    assert (older / "params_shard_0.bin").samefile(weights / "params_shard_0.bin")


def test_a_damaged_library_takes_a_compilation(older, weights):
    (older / "params_shard_0.bin").write_bytes(b"WEIGHTS")
    manifest = artifact.read_manifest(older)
    assert not package.repair(older, manifest, weights, ["model.so", "params_shard_0.bin"])
    assert (older / "params_shard_0.bin").read_bytes() == b"WEIGHTS"
