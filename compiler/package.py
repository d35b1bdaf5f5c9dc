"""Assembles a compiled folder: library, weights, tokenizer, manifest."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tvm import IRModule

import wherry
from wherry.artifact.head import ClassHead, ScoreHead
from wherry.artifact.manifest import (
    INTERFACE_HASH,
    MANIFEST,
    SCHEMA_VERSION,
    FileRecord,
    Manifest,
    read_manifest,
    record,
)
from wherry.artifact.variants import TOWER
from wherry.base.temporary import temporary_folder, write_atomically
from wherry.errors import ArtifactError, UsageError, listing
from wherry.hub.folder import optional_json
from wherry.quant.plan import Own
from wherry.quant.plan import to_json as own_to_json
from wherry.quant.scheme import Scheme, floats_of
from wherry.targets.target import TargetPreset

from . import web_llm_chat
from .checkpoint.folder import ModelFolder
from .library import web_llm
from .library.build import Deployment
from .library.export import ProgramTraits, export, export_tower, reads_source
from .library.memory import declared, of_tower
from .library.variants import Libraries, build_libraries
from .load import Described
from .towers import DescribedTower, on_target
from .weight_marker import files_of

Progress = Callable[[str, int, int], None]
PHASES = ("export", "quantize", "attach", "fuse", "lower", "schedule", "link", "generate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """All inputs that determine a compiled folder."""

    described: Described
    weights: Path  # folder of converted weights; files are hard-linked, or copied to another disk
    scheme: Scheme  # quantization scheme of the converted weights
    own: Own  # parameters that are stored in other schemes
    label: str  # name of the weights' encoding that users see
    target: TargetPreset
    deployment: Deployment  # limits that memory is planned for
    name: str  # model name that users see
    key: str  # hash of all inputs, stored in the manifest
    # Symbol prefix by which a program finds the library if it is linked in: the same on every
    # target.
    linked: str


def package(
    folder: Path,
    compilation: Compilation,
    *,
    dump: Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Compile and write `folder`; files appear under their final name only when complete.

    Args:
        folder: the output folder; files of an older compilation are replaced, other files stay.
        compilation: the inputs of the compilation.
        dump: a folder for the module after each phase, and the generated device code.
        progress: called with "compile" and the number of phases done.

    Raises:
        UsageError: the folder has another file under a name that the compilation writes.
    """
    described, target, deployment = (
        compilation.described,
        compilation.target,
        compilation.deployment,
    )
    with temporary_folder(folder) as making:
        # links come first, because `wherry rm` may remove the weights later
        taken = _take_weights(compilation.weights, making)
        tower = on_target(described.tower, target)
        libraries = 1 + len(target.variants)
        report = _Report(progress, dump, programs=1 if tower is None else 2, libraries=libraries)
        program = export(
            described.arch,
            described.config,
            compilation.scheme,
            dtype=target.dtype,
            kv_dtype=target.kv_dtype,
            entries=web_llm.entries(described.entries) if target.interface else described.entries,
            traits=ProgramTraits(
                # WebLLM's interface has its own KV cache, without this layout.
                latents_once=target.latents_once and target.interface is None,
                cache_words=target.cache_words,
                most_bytes=target.binding_bytes,
                features=tower.shape.features if tower else 0,
            ),
            own=compilation.own,
        )
        report("", "export", program.mod)
        built = build_libraries(
            making,
            program,
            target,
            deployment,
            report,
            compilation.linked,
        )
        seeing = _build_tower(making, tower, compilation, report) if tower else None
        library_files = (*built.files, *(seeing.files if seeing else ()))
        files = {f.name: record(f) for f in library_files} | taken
        if target.interface:
            config = _write_chat_config(
                making, described, deployment, compilation.scheme.name, taken
            )
            files[config.name] = record(config)
        manifest = Manifest(
            schema=SCHEMA_VERSION,
            key=compilation.key,
            interface=INTERFACE_HASH,
            wherry=wherry.__version__,
            tvm=version("apache-tvm"),
            name=compilation.name,
            architecture={"name": described.arch.name, "config": dict(described.folder.raw)},
            quantization=compilation.label,
            target=built.target,
            deployment=deployment.record(target, described.config.longest),
            memory=declared(
                built.params,
                built.workspace,
                program,
                deployment.page_size,
                of_tower(seeing.params, seeing.workspace, program.features) if seeing else None,
            ),
            capabilities=_capabilities(described, tower=tower is not None),
            library=built.files[0].name,
            files=files,
            plan=own_to_json(compilation.own),
        )
        write_atomically(making / MANIFEST, manifest.to_json())
        _put(making, folder)


def _build_tower(
    folder: Path, tower: DescribedTower, compilation: Compilation, report: _Report
) -> Libraries:
    """Compile the tower's libraries into `folder`."""
    target = compilation.target
    program = export_tower(
        tower.tower,
        tower.config,
        tower.shape,
        floats_of(compilation.scheme),
        dtype=target.dtype,
        traits=ProgramTraits(most_bytes=target.binding_bytes),
    )
    report(TOWER, "export", program.mod)
    return build_libraries(
        folder,
        program,
        target,
        compilation.deployment,
        report,
        f"{compilation.linked}_{TOWER}",
        stem=TOWER,
    )


def _write_chat_config(
    folder: Path,
    described: Described,
    deployment: Deployment,
    quantization: str,
    files: Collection[str],
) -> Path:
    """Write mlc-chat-config.json, the file that WebLLM reads first; return its path."""
    raw = described.folder.raw
    content = web_llm.chat_config(
        raw,
        asdict(deployment),
        quantization=quantization,
        vocab_size=described.config.vocab_size,
        files=sorted(files),
        tokens={**raw, **optional_json(folder / "generation_config.json")},
        chat=_conversation(described.folder),
    )
    path = folder / web_llm.CONFIG
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def _conversation(folder: ModelFolder) -> dict[str, Any] | None:
    """Return the chat template in WebLLM's form; None: the model has no template."""
    template = folder.template
    if template is None:
        return None
    named = {name: folder.tokenizer_config.get(name) for name in ("bos_token", "eos_token")}
    texts = {
        name: str(token.get("content", "")) if isinstance(token, dict) else str(token or "")
        for name, token in named.items()
    }
    return web_llm_chat.conversation(template, texts)


class _Report:
    """Counts phases for the progress callback, and writes modules to the dump folder."""

    def __init__(
        self, progress: Progress | None, dump: Path | None, programs: int, libraries: int
    ) -> None:
        self.progress = progress
        self.dump = dump
        self.done = 0
        # The libraries of a program share the export phase.
        self.phases = programs * (1 + libraries * (len(PHASES) - 1))

    def __call__(self, level: str, phase: str, product: IRModule | Mapping[str, str]) -> None:
        self.done += 1
        if self.dump:
            folder = self.dump / level
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{PHASES.index(phase) + 1}_{phase}"
            if isinstance(product, IRModule):
                product = {"py": product.script(show_meta=False)}
            for suffix, text in product.items():
                (folder / f"{name}.{suffix}").write_text(text)
        if self.progress:
            self.progress("compile", self.done, self.phases)


def _take_weights(weights: Path, folder: Path) -> dict[str, FileRecord]:
    """Link the converted weights into `folder`; return their file records from the conversion."""
    files = files_of(weights)
    for name in files:
        _take(weights / name, folder / name)
    return files


def _take(file: Path, to: Path) -> None:
    try:
        os.link(file, to)
    except OSError:  # another disk, or a file system without hard links
        shutil.copyfile(file, to)


def repair(folder: Path, manifest: Manifest, weights: Path, damaged: Collection[str]) -> bool:
    """Replace `damaged` files by intact ones from `weights`; return whether that was possible.

    If other files than weights are damaged, nothing is changed, because they need a compilation.
    """
    weight_files = files_of(weights)
    if any(weight_files.get(name) != manifest.files[name] for name in damaged):
        return False
    for name in damaged:
        temporary = folder / f".{name}.{os.getpid()}.tmp"
        temporary.unlink(missing_ok=True)
        _take(weights / name, temporary)
        temporary.replace(folder / name)
    return True


def _capabilities(described: Described, *, tower: bool) -> tuple[str, ...]:
    """Return the kinds of requests that the model serves, such as "chat" or "score"."""
    if isinstance(described.head, ScoreHead):
        return ("score",)
    if isinstance(described.head, ClassHead):
        return ("classify", "score") if len(described.head.labels) == 1 else ("classify",)
    chats = described.folder.has_template and not reads_source(described.config)
    by_entry: dict[str, tuple[str, ...]] = {"forward": ("completion",) + ("chat",) * chats}
    by_entry |= {"embed": ("embedding",), "encode": (), "draft": ("mtp",)}
    named = tuple(name for entry in described.entries for name in by_entry[entry])
    return (*named, "vision") if tower else named


def _put(built: Path, folder: Path) -> None:
    """Move the files of `built` into `folder`, and leave the user's own files there.

    An older folder is replaced file by file, its manifest last, so that an interrupted replacement
    is detected as damaged and repeated.
    """
    if not folder.exists():
        built.rename(folder)
        return
    new = sorted(path.name for path in built.iterdir() if path.name != MANIFEST)
    try:
        old: Collection[str] = read_manifest(folder).files
    except ArtifactError:  # without a valid manifest, the old compilation's files are unknown
        old = new if (folder / MANIFEST).exists() else ()
    taken = [name for name in new if name not in old and (folder / name).exists()]
    if taken:
        raise UsageError(
            f"{folder} has files in the way, which no compilation put there:\n{listing(taken)}\n"
            "Move them, or choose another folder: -o DIR"
        )
    for name in new:
        (built / name).replace(folder / name)
    for name in set(old) - set(new):
        (folder / name).unlink(missing_ok=True)
    (built / MANIFEST).replace(folder / MANIFEST)
