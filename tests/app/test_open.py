"""From a folder and options to an app: which library, which device, what is wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from wherry.artifact.manifest import MANIFEST, read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.machine.plugins import find_plugin

from .app import App, refused
from .request_cases import ASK, GREEDY

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(ensure_artifact("demo", target="cpu"))


def packaged(folder: Path, to: Path) -> Path:
    """As `wherry package` writes it: the manifest names the library's symbols, not its file."""
    to.mkdir()
    manifest = read_manifest(folder)
    files = {n: f for n, f in manifest.files.items() if not n.startswith("model.")}
    for name in files:
        (to / name).symlink_to(folder / name)
    target = {**manifest.target, "objects": {"format": "ELF", "symbols": "m1234_"}}
    changed = dataclasses.replace(manifest, files=files, target=target, library="model.tar")
    (to / MANIFEST).write_text(changed.to_json())
    return to


def test_a_folder_that_is_none(tmp_path):
    assert "wherry compile" in refused(tmp_path)


def test_a_package_s_model_is_looked_for_in_the_program(folder, tmp_path):
    model = packaged(folder, tmp_path / "demo")
    assert "no model m1234_ is linked into this program" in refused(model)
    assert "no model other_ is linked" in refused(model, system_library_prefix="other_")
    app = App(model, library=str(folder / read_manifest(folder).library))
    assert app.ask(messages=ASK, **GREEDY)["choices"]
    app.close()
    said = refused(model, library="x", system_library_prefix="m1234_")
    assert 'options "library" and "system_library_prefix" are two places of one library' in said


def test_a_run_time_that_is_not_there(folder):
    said = refused(folder, runtime="")
    assert 'run time (option "runtime" has its path) cannot be loaded: libtvm_runtime.so' in said


def test_a_driver_that_is_not_there(folder, tmp_path):
    said = refused(folder, device="opencl:1", driver=str(tmp_path / "none.so"))
    assert 'opencl\'s driver (option "driver" has its path) cannot be loaded' in said
    assert "libwherry_abacus.so" in refused(folder, device="abacus")


@pytest.mark.nightly
def test_a_device_s_driver_is_opened(folder):
    model = Path(ensure_artifact("demo", target="opencl"))
    app = App(model, device="opencl", driver=str(find_plugin("opencl")))
    answer = app.ask(messages=ASK, **GREEDY)["choices"][0]["message"]["content"]
    app.close()
    assert len(set(answer.split())) > 4
