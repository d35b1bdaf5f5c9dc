"""Kernels of libraries that are linked into one program have names of their own."""

from __future__ import annotations

import tarfile

import pytest

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.packager import object_files


@pytest.mark.nightly  # compiles a model for each level
@pytest.mark.cpu
def test_levels_of_a_cpu_share_no_symbol(tmp_path):
    folder = ensure_artifact("demo", target="cpu:armv8-a+", host="linux-aarch64-app")
    manifest = read_manifest(folder)
    variants = manifest.target["variants"]
    base = manifest.target["objects"]["symbols"]
    assert [one["symbols"] for one in variants] == [f"{base}1_", f"{base}2_"]
    libraries = [(manifest.library, base), *((o["library"], o["symbols"]) for o in variants)]
    defined = []
    for library, prefix in libraries:
        with tarfile.open(folder / library) as archive:
            archive.extractall(tmp_path / library, filter="data")
        objects = [o for p in (tmp_path / library).iterdir() for o in object_files.read(p)]
        names = frozenset().union(*(o.defined for o in objects))
        # The others are LLVM's own weak functions, of which a linker takes one.
        defined.append({name for name in names if "tvm_ffi" in name})
        assert all(prefix in name for name in defined[-1]), sorted(defined[-1])[:5]
    assert all(len(names) > 10 for names in defined)
    assert len(frozenset().union(*defined)) == sum(map(len, defined))
