"""Opens compiled code in this process, for TVM's virtual machine."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import tvm
import tvm_ffi

from wherry.errors import ArtifactError, ToolchainError
from wherry.machine.tvm_runtime import open_object_linker


def open_library(path: Path) -> Any:
    """Return the module of a shared library, or of an archive of objects, which is linked here.

    Raises:
        ArtifactError: the archive is damaged.
        ToolchainError: it is neither, or nothing here links objects.
    """
    if path.suffix == ".so":
        return tvm.runtime.load_module(str(path))
    if path.suffix != ".tar":
        raise ToolchainError(
            f"{path.name} is for programs that bring a run time of their own; this machine loads "
            "model.so and model.tar. Compile for this machine: --target cpu"
        )
    open_object_linker()
    session = tvm_ffi.get_global_func("tvm_ffi_orcjit.GlobalDefaultSession")
    load = tvm_ffi.get_global_func("tvm_ffi_orcjit.SessionLoadModule")
    return load(session(), _objects(path), "", None, None)


def _objects(path: Path) -> list[bytes]:
    """Return the object files of an archive."""
    try:
        with tarfile.open(path) as archive:
            files = [archive.extractfile(member) for member in archive if member.isfile()]
            return [file.read() for file in files if file is not None]
    except tarfile.TarError as e:
        raise ArtifactError(f"{path} is damaged ({e}). Compile the model again.") from e
