"""Builds the libraries of a compiled folder: one, or one per micro-architecture level of a CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import IRModule

from wherry.artifact.variants import MODEL
from wherry.machine.cuda_driver import SHARED_MEMORY
from wherry.targets.device_features import needed
from wherry.targets.target import TargetPreset
from wherry.targets.webgpu_buffers import limits_for

from .build import Deployment, Library, build_library
from .export import ExportedProgram
from .memory import bytes_of

# Arguments: CPU level ("" if there is only one; a tower's has a name before it), phase, and the
# phase's result: a module, or generated code by file suffix.
Report = Callable[[str, str, IRModule | Mapping[str, str]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """The built libraries of a folder, and what the manifest records of them."""

    files: tuple[Path, ...]  # the first library runs on every machine of the target
    # target record of the manifest, with "variants" if there are several libraries
    target: dict[str, Any]
    params: tuple[list[dict[str, Any]], ...]  # metadata of the parameters, one list per library
    workspace: int  # bytes of intermediate tensors; the maximum over the libraries


def build_libraries(
    folder: Path,
    program: ExportedProgram,
    target: TargetPreset,
    deployment: Deployment,
    report: Report,
    linked: str,
    stem: str = MODEL,
) -> Libraries:
    """Compile `program` for `target` and each of its variants into `folder`.

    The variants share only the export (5% of a compilation), because later phases choose kernels.

    Args:
        folder: gets the libraries.
        program: the program.
        target: the target.
        deployment: limits of the memory plan.
        report: called after each phase.
        linked: the symbol prefix by which a program finds a library that is linked into it.
        stem: stem of the first library's file name.
    """
    objects = target.objects(linked)
    levels = (target, *target.variants)
    files = [folder / _file_name(stem, level, level is not target) for level in levels]
    built: list[Library] = []
    symbols = _symbols(objects, len(levels))
    for level, file, prefix in zip(levels, files, symbols, strict=True):
        variant = level.name.partition(":")[2] if target.variants else ""
        dumped = variant if stem == MODEL else f"{stem}-{variant}".rstrip("-")

        def on_phase(phase: str, mod: IRModule, dumped: str = dumped) -> None:
            report(dumped, phase, mod)

        library = build_library(
            program,
            level,
            deployment,
            file,
            symbols=prefix,
            on_phase=on_phase,
        )
        built.append(library)
        report(dumped, "generate", library.sources)
    return Libraries(
        files=tuple(files),
        target=_record(target, files[1:], built[0], symbols[1:])
        | ({"objects": objects} if objects else {}),
        params=tuple(library.metadata["params"] for library in built),
        workspace=max(library.workspace for library in built),
    )


def _file_name(stem: str, level: TargetPreset, is_variant: bool) -> str:
    """Return the library's file name: model.so, or model.x86-64-v4.so for a CPU level."""
    variant = f".{level.name.partition(':')[2]}" if is_variant else ""
    return f"{stem}{variant}.{level.library}"


def _symbols(objects: Mapping[str, str] | None, levels: int) -> list[str | None]:
    """Return the symbol prefix of each level's library; a program may have all of them linked in.

    The prefix of the first level is that of `objects`. None: the libraries are loaded from files.
    """
    first = objects.get("symbols") if objects else None
    return [first, *(first and f"{first}{level}_" for level in range(1, levels))]


def _record(
    target: TargetPreset, files: list[Path], built: Library, symbols: list[str | None]
) -> dict[str, Any]:
    variants = [
        {"name": variant.name, "features": list(variant.features), "library": file.name}
        | ({"symbols": prefix} if prefix else {})
        for variant, file, prefix in zip(target.variants, files, symbols, strict=True)
    ]
    record = target.record() | ({"variants": variants} if variants else {})
    if record["kind"] != "llvm":
        record["device_features"] = needed(record["kind"], built.sources)
    if record["kind"] == "webgpu" and (limits := limits_for(_tensors(built))):
        record["device_limits"] = limits
    if record["kind"] == "cuda" and built.dynamic_shared_bytes:
        record["device_limits"] = {SHARED_MEMORY: built.dynamic_shared_bytes}
    return record


def _tensors(built: Library) -> dict[str, int]:
    """Return the bytes of each parameter, and of the largest intermediate tensor."""
    params = {p["name"]: bytes_of(p["shape"], p["dtype"]) for p in built.metadata["params"]}
    return {**params, "a step's results": built.largest_tensor}
