"""Put a compiled model's folder together: library, weights, tokenizer, manifest."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tvm import IRModule

import wherry
from wherry.artifact import (
    INTERFACE_HASH,
    MANIFEST,
    SCHEMA_VERSION,
    FileRecord,
    Manifest,
    read_manifest,
    record,
    write_atomically,
)
from wherry.errors import ArtifactError, UsageError, listing
from wherry.head import ScoreHead
from wherry.quant.scheme import Scheme
from wherry.targets.target import TargetPreset
from wherry.temporary import temporary_folder

from . import web_llm, web_llm_chat
from .build import Deployment
from .convert import files_of
from .export import export
from .folder import read_json
from .libraries import build_libraries
from .load import Described
from .memory import declared

Progress = Callable[[str, int, int], None]
PHASES = ("export", "attach", "fuse", "lower", "schedule", "link", "generate")


def package(
    folder: Path,
    *,
    described: Described,
    weights: Path,
    scheme: Scheme,
    target: TargetPreset,
    deployment: Deployment,
    name: str,
    key: str,
    linked: str,
    dump: Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Compile and write `folder`, first under a temporary name beside it.

    Args:
        folder: where to; what an older compilation left there is replaced, nothing else touched.
        described: the model.
        weights: folder of converted weights; its files are linked, or copied to another disk.
        scheme: in which the weights are.
        target: where it will run.
        deployment: what memory is planned for.
        name: what people call it.
        key: hash of all of these, kept in the manifest.
        linked: by what a program finds the model if it is linked into it: the same on all systems.
        dump: a folder for the module after each phase, and the source of the device's code.
        progress: called with "compile" and the number of phases done.

    Raises:
        UsageError: the folder has a file of one of our names that no compilation wrote.
    """
    with temporary_folder(folder) as making:
        taken = _take_weights(weights, making)  # first: later somebody may have removed them
        report = _Report(progress, dump, libraries=1 + len(target.variants))
        program = export(
            described.arch,
            described.config,
            scheme,
            dtype=target.dtype,
            kv_dtype=target.kv_dtype,
            entries=web_llm.entries(described.entries) if target.interface else described.entries,
            # Another engine's interface brings its own KV cache.
            latents_once=target.latents_once and target.interface is None,
            most_bytes=target.binding_bytes,
        )
        report("", "export", program.mod)
        built = build_libraries(making, program, target, deployment, described, report, linked)
        files = {f.name: record(f) for f in built.files} | taken
        if target.interface:
            config = _write_chat_config(making, described, deployment, scheme.name, taken)
            files[config.name] = record(config)
        manifest = Manifest(
            schema=SCHEMA_VERSION,
            key=key,
            interface=INTERFACE_HASH,
            wherry=wherry.__version__,
            tvm=version("apache-tvm"),
            name=name,
            architecture={"name": described.arch.name, "config": described.raw},
            quantization=scheme.name,
            target=built.target,
            deployment=deployment.record(target, described.config.longest),
            memory=declared(built.params, built.workspace, program, deployment.page_size),
            capabilities=_capabilities(described, has_template=_has_template(making)),
            library=built.files[0].name,
            files=files,
        )
        write_atomically(making / MANIFEST, manifest.to_json())
        _put(making, folder)


def _write_chat_config(
    folder: Path,
    described: Described,
    deployment: Deployment,
    quantization: str,
    files: Collection[str],
) -> Path:
    """What WebLLM reads first of a model."""
    generation = folder / "generation_config.json"
    content = web_llm.chat_config(
        described.raw,
        asdict(deployment),
        quantization=quantization,
        vocab_size=described.config.vocab_size,
        files=sorted(files),
        tokens={**described.raw, **(read_json(generation) if generation.is_file() else {})},
        chat=_conversation(folder),
    )
    path = folder / web_llm.CONFIG
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def _conversation(folder: Path) -> dict[str, Any] | None:
    """What WebLLM is told of the chat template; None: there is none."""
    config = folder / "tokenizer_config.json"
    fields = read_json(config) if config.is_file() else {}
    apart = folder / "chat_template.jinja"
    template = apart.read_text("utf-8") if apart.is_file() else fields.get("chat_template")
    if not isinstance(template, str):
        return None
    named = {name: fields.get(name) for name in ("bos_token", "eos_token")}
    texts = {
        name: str(token.get("content", "")) if isinstance(token, dict) else str(token or "")
        for name, token in named.items()
    }
    return web_llm_chat.conversation(template, texts)


class _Report:
    """Counts phases for the progress, and writes modules for the dump."""

    def __init__(self, progress: Progress | None, dump: Path | None, libraries: int) -> None:
        self.progress = progress
        self.dump = dump
        self.done = 0
        self.phases = 1 + libraries * (len(PHASES) - 1)  # the export is shared

    def __call__(self, level: str, phase: str, made: IRModule | Mapping[str, str]) -> None:
        self.done += 1
        if self.dump:
            folder = self.dump / level
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{PHASES.index(phase) + 1}_{phase}"
            if isinstance(made, IRModule):
                made = {"py": made.script(show_meta=False)}
            for suffix, text in made.items():
                (folder / f"{name}.{suffix}").write_text(text)
        if self.progress:
            self.progress("compile", self.done, self.phases)


def _take_weights(weights: Path, folder: Path) -> dict[str, FileRecord]:
    """Link the converted files into `folder`; their records, as the conversion measured them."""
    files = files_of(weights)
    for name in files:
        _take(weights / name, folder / name)
    return files


def _take(file: Path, to: Path) -> None:
    try:
        os.link(file, to)
    except OSError:  # another disk, or one without links
        shutil.copyfile(file, to)


def repair(folder: Path, manifest: Manifest, weights: Path, damaged: Collection[str]) -> bool:
    """Put whole files in place of `damaged` ones that come from `weights`, which is whole.

    False, and nothing is done, if there are others: then it takes a compilation.
    """
    whole = files_of(weights)
    if any(whole.get(name) != manifest.files[name] for name in damaged):
        return False
    for name in damaged:
        temporary = folder / f".{name}.{os.getpid()}.tmp"
        temporary.unlink(missing_ok=True)
        _take(weights / name, temporary)
        temporary.replace(folder / name)
    return True


def _capabilities(described: Described, *, has_template: bool) -> tuple[str, ...]:
    """What requests the model answers."""
    if isinstance(described.head, ScoreHead):
        return ("score",)
    found = {"forward": ("completion", "chat") if has_template else ("completion",)}
    found["embed"] = ("embedding",)
    return tuple(name for entry in described.entries for name in found[entry])


def _has_template(folder: Path) -> bool:
    config = folder / "tokenizer_config.json"
    inside = config.is_file() and "chat_template" in read_json(config)
    return inside or any(folder.glob("chat_template*"))


def _put(made: Path, folder: Path) -> None:
    """Make `folder` hold what `made` does, and all that is not ours besides.

    Where an older one is, file by file: its manifest stays until the last moment, so that a folder
    left half-way is found damaged, and made again.
    """
    if not folder.exists():
        made.rename(folder)
        return
    new = sorted(path.name for path in made.iterdir() if path.name != MANIFEST)
    try:
        old: Collection[str] = read_manifest(folder).files
    except ArtifactError:  # damaged, or there is none: which files are ours is not known
        old = new if (folder / MANIFEST).exists() else ()
    taken = [name for name in new if name not in old and (folder / name).exists()]
    if taken:
        raise UsageError(
            f"{folder} has files in the way, which no compilation put there:\n{listing(taken)}\n"
            "Move them, or choose another folder: -o DIR"
        )
    for name in new:
        (made / name).replace(folder / name)
    for name in set(old) - set(new):
        (folder / name).unlink(missing_ok=True)
    (made / MANIFEST).replace(folder / MANIFEST)
