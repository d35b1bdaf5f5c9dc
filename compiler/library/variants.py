"""The libraries of a compiled folder: one, or one for each level of a CPU family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import IRModule

from wherry.machine.cuda_driver import SHARED_MEMORY
from wherry.targets.device_features import needed
from wherry.targets.target import TargetPreset
from wherry.targets.webgpu_buffers import limits_for

from ..load import Described
from .build import Deployment, Library, build_library
from .export import Program
from .memory import bytes_of

# Level ("" if there is only one), phase, and its result: the module, or sources by file suffix.
Report = Callable[[str, str, IRModule | Mapping[str, str]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """Built libraries, and their part of the manifest."""

    files: tuple[Path, ...]  # the first one runs on every machine of the target
    target: dict[str, Any]  # the manifest's record, with "variants" if there are any
    params: tuple[list[dict[str, Any]], ...]  # metadata of each library
    workspace: int  # bytes; the maximum over the libraries


def build_libraries(
    folder: Path,
    program: Program,
    target: TargetPreset,
    deployment: Deployment,
    described: Described,
    report: Report,
    linked: str,
) -> Libraries:
    """Compile `program` for `target` and each of its variants into `folder`.

    They share only the export, which precedes the choice of kernels: 5% of a compilation. `linked`
    is the prefix by which a program finds a library that is linked into it.
    """
    objects = target.objects(linked)
    levels = (target, *target.variants)
    files = [folder / _file_name(level, level is not target) for level in levels]
    built: list[Library] = []
    for level, file in zip(levels, files, strict=True):
        name = level.name.partition(":")[2] if target.variants else ""

        def on_phase(phase: str, mod: IRModule, name: str = name) -> None:
            report(name, phase, mod)

        library = build_library(
            program,
            level,
            deployment,
            file,
            name=described.arch.name,
            vocab_size=described.config.vocab_size,
            symbols=objects.get("symbols") if objects else None,
            on_phase=on_phase,
        )
        built.append(library)
        report(name, "generate", library.sources)
    return Libraries(
        files=tuple(files),
        target=_record(target, files[1:], built[0]) | ({"objects": objects} if objects else {}),
        params=tuple(library.metadata["params"] for library in built),
        workspace=max(library.workspace for library in built),
    )


def _file_name(level: TargetPreset, is_variant: bool) -> str:
    """model.so, or model.x86-64-v4.so for a level."""
    stem = f"model.{level.name.partition(':')[2]}" if is_variant else "model"
    return f"{stem}.{level.library}"


def _record(target: TargetPreset, files: list[Path], built: Library) -> dict[str, Any]:
    variants = [
        {"name": variant.name, "features": list(variant.features), "library": file.name}
        for variant, file in zip(target.variants, files, strict=True)
    ]
    record = target.record() | ({"variants": variants} if variants else {})
    if record["kind"] != "llvm":
        record["device_features"] = needed(record["kind"], built.sources)
    if record["kind"] == "webgpu" and (asked := limits_for(_tensors(built))):
        record["device_limits"] = asked
    if record["kind"] == "cuda" and built.asked_shared_bytes:
        record["device_limits"] = {SHARED_MEMORY: built.asked_shared_bytes}
    return record


def _tensors(built: Library) -> dict[str, int]:
    """Bytes of the parameters, and of the largest intermediate tensor."""
    params = {p["name"]: bytes_of(p["shape"], p["dtype"]) for p in built.metadata["params"]}
    return {**params, "a step's results": built.largest_tensor}
