"""Compiles a program into a library with metadata."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm import IRModule, relax
from tvm.ir import StringImm
from tvm.relax.expr_functor import PyExprVisitor, visitor
from tvm.support import cc
from tvm.target import Target

from wherry.artifact.manifest import INTERFACE_HASH
from wherry.passes.kv_cache import PAGE_SIZE
from wherry.passes.pipelines import PipelineInputs, run
from wherry.passes.prefix_kernels import PrefixKernels
from wherry.passes.recurrent_state import DTYPE as SLOT_DTYPE
from wherry.passes.select_kernels import PARAMS
from wherry.targets.hosts import local_compiler
from wherry.targets.target import TargetPreset
from wherry.targets.toolchains import web as web_toolchain
from wherry.targets.toolchains.toolchain import Requirement, require
from wherry.targets.webgpu import LIMITS as WEBGPU_LIMITS

from . import web_llm
from .candidates import CHOICE, add_candidates
from .candidates import ENTRY as CANDIDATES
from .device_limits import require_limits
from .device_sources import device_sources
from .export import FEATURES, ExportedProgram

DRAFT_ROWS = 16
# TVM passes that are skipped on CPUs: compacting buffers and merging common subexpressions take a
# third of the compile time. Wherry's kernels allocate exactly what they use, and LLVM merges common
# subexpressions itself.
_NEEDLESS_ON_CPUS = ("s_tir.CompactBufferAllocation", "tirx.CommonSubexprElim")
OnPhase = Callable[[str, IRModule], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Limits that a library's memory is planned for. An engine may run with smaller ones."""

    context: int  # tokens of one sequence
    max_batch: int = 32  # sequences in one step
    prefill_chunk: int = 512  # rows of one step
    logit_rows: int = 0  # rows with logits in one step; 0: room for draft tokens is added
    page_size: int = PAGE_SIZE  # tokens of one page of the KV cache

    def bounds(self) -> dict[str, int]:
        """Return upper bounds of a step: rows, logit rows, page ids of a cache group, sequences."""
        pages = self.max_batch * -(-self.context // self.page_size)
        rows = {"n": self.prefill_chunk, "m": self.logit_rows}
        return {**rows, "p": pages, "r": self.max_batch}

    def record(self, target: TargetPreset, longest: int) -> dict[str, Any]:
        """Return the manifest's record: these limits, and the dtypes of `target`.

        Args:
            target: the target preset, with the dtypes of KV cache and activations.
            longest: the longest context that the model supports, in tokens.
        """
        return {
            **asdict(self),
            "longest": longest,
            "kv_dtype": target.kv_dtype,
            "activations": target.activations,
        }

    def __post_init__(self) -> None:
        if not self.logit_rows:  # one row per sequence, and some for draft tokens
            rows = min(self.prefill_chunk, self.max_batch + DRAFT_ROWS)
            object.__setattr__(self, "logit_rows", rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A compiled library with the metadata that the manifest needs."""

    metadata: dict[str, Any]
    workspace: int  # bytes of a step's intermediate tensors
    largest_tensor: int  # bytes of the largest intermediate tensor
    # bytes: the largest dynamic shared memory of any launch; 0: none is dynamic
    dynamic_shared_bytes: int
    sources: dict[str, str]  # generated device code by file suffix: "cu", "cl"


def build_library(
    program: ExportedProgram,
    target: TargetPreset,
    deployment: Deployment,
    out: Path | None,
    *,
    symbols: str | None = None,
    on_phase: OnPhase = lambda phase, mod: None,
) -> Library:
    """Compile `program` for `target` and write it to `out` (.so, .tar, .wasm).

    Args:
        program: from `export`.
        target: the target.
        deployment: limits of the memory plan.
        out: path of the library; its folder exists. None: stop after the last phase, without any
            requirements.
        symbols: prefix by which a program finds the library that is linked into it; None: it is
            loaded from a file.
        on_phase: called with the module after each phase.

    Raises:
        ToolchainError: a requirement of the target is missing.
        UsageError: the model's kernels exceed the limits of the target's blocks.
    """
    if out:
        requirements = target.toolchain.requirements() if target.toolchain else ()
        links = out.suffix == ".so" and target.linker is None
        require(target.name, (*requirements, *([_linker()] if links else [])))
    vocab_size = program.vocab_size
    inputs = PipelineInputs(
        quantization=program.quantization,
        cache=program.cache,
        slots=program.slots,
        kernels=target.kernels,
        bounds=program.bounds(deployment.bounds()),
        stored=program.stored,
        entries=program.entries,
        narrow=target.activations == "float16",
    )
    metadata = _metadata(program, deployment)

    def with_metadata(mod: IRModule) -> IRModule:
        metadata["params"] = json.loads(str(mod.attrs[PARAMS]))
        if target.interface:
            mod = web_llm.add_interface(mod, metadata, WEBGPU_LIMITS, vocab_size=vocab_size)
            require_limits(mod, target)
        elif "forward" in program.entries:
            mod, candidates = add_candidates(
                mod, target, vocab_size=vocab_size, logit_rows=deployment.logit_rows
            )
            metadata.update(candidates)
            if candidates:
                require_limits(mod, target)
        return _add_metadata(mod, metadata)

    workspace = largest = dynamic_shared_bytes = 0

    def seen(phase: str, mod: IRModule) -> None:
        nonlocal workspace, largest, dynamic_shared_bytes
        if phase == "schedule":
            dynamic_shared_bytes = require_limits(mod, target)
        if phase == "link":
            own = (CANDIDATES, CHOICE) if CANDIDATES in metadata else ()
            storage = _storage(mod, program.entries + own)
            workspace, largest = sum(storage.elements()), max(storage, default=0)
            if own:  # two result buffers: a step may run while the previous result is read
                workspace += 4 * deployment.logit_rows * vocab_size
        on_phase(phase, mod)

    def library(sources: dict[str, str]) -> Library:
        return Library(
            metadata=metadata,
            workspace=workspace,
            largest_tensor=largest,
            dynamic_shared_bytes=dynamic_shared_bytes,
            sources=sources,
        )

    with ExitStack() as stack:
        if target.toolchain and out:
            stack.enter_context(target.toolchain.active())
        device = Target(dict(target.device), host=dict(target.host))
        stack.enter_context(device)
        mod = run(program.mod, inputs, seen, before_link=with_metadata)
        if out is None:
            return library({})
        if symbols and out.suffix == ".tar":  # linked into an app, with other libraries
            mod = tvm.transform.Sequential([PrefixKernels(symbols)])(mod)
        if symbols:  # TVM cannot parse an empty attribute, which stands for system_lib alone
            mod = mod.with_attr("system_lib_prefix", symbols)
        with code_generation(device):
            executable = relax.build(
                mod,
                device,
                relax_pipeline=tvm.transform.Sequential([]),
                system_lib=symbols is not None,
            )
        link: Callable[..., None] = _write_archive
        if out.suffix == ".so":
            link = cc.cross_compiler(target.linker or local_compiler())
        if target.library == "wasm":
            link = web_toolchain.Linker(target.interface, threads=device.kind.name == "llvm")
        # LLVM's debug sections are a quarter of a library, and useless without its sources, so
        # the linker strips them.
        linked = {"options": ["-Wl,-S"]} if out.suffix == ".so" else {}
        executable.export_library(str(out), fcompile=link, **linked)
        sources = device_sources(executable.mod)
        sources |= target.toolchain.sources() if target.toolchain else {}
    return library(sources)


def _metadata(program: ExportedProgram, deployment: Deployment) -> dict[str, Any]:
    """Return the library's metadata without its parameters (docs/design/compiled-library.md)."""
    common = {
        "schema": 2,
        "interface": INTERFACE_HASH,
        "name": program.name,
        "inputs": list(program.inputs),
        "entries": list(program.entries),
    }
    if (tower := program.tower) is not None:
        sizes = {"patch": tower.patch, "patches_per_row": tower.patches_per_row}
        if tower.taps > 1:
            sizes["position_taps"] = tower.taps
        if tower.taps > 1 or "coordinates" in tower.inputs:  # tiles differ in size
            sizes["tile_patches"] = tower.tile_patches
        return {**common, **sizes, FEATURES: tower.features, "groups": [], "state": []}
    state = [
        {
            "kind": "paged_kv",
            "layers": len(own.layers),
            "shape": list(own.page_shape),
            "dtype": own.dtype,
            "group": own.group,
        }
        for own in program.cache.state
    ]
    state += [
        {
            "kind": "recurrent",
            "layers": len(own.calls),
            "shape": list(own.shape),
            "dtype": SLOT_DTYPE,
        }
        for own in program.slots
    ]
    metadata: dict[str, Any] = {
        **common,
        "vocab_size": program.vocab_size,
        "embedding_size": program.embedding_size,
        **asdict(deployment),
        "groups": [
            {"kind": "cross" if group.cross else "self", "window": group.window or 0}
            for group in program.cache.groups
        ],
        "state": state,
    }
    if program.bidirectional:
        metadata["bidirectional"] = 1
    if program.features:
        metadata[FEATURES] = program.features
    return metadata


def _linker() -> Requirement:
    """The compiler that links a library for this machine."""
    command = local_compiler() or ""
    missing = f" ({command} is not installed)" if command else ""
    return Requirement(
        name=f"C++ compiler, which links models{missing}",
        installed=shutil.which(command),
        fix="apt-get install g++, or wherry compile --format objects",
    )


def _write_archive(path: str, objects: Sequence[str], **_: Any) -> None:
    """Write object files as a tar archive, equal for equal objects; TVM calls it as a linker."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for file in map(Path, objects):
            entry = tarfile.TarInfo(file.name)
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(entry, content)


def code_generation(device: Target) -> tvm.transform.PassContext:
    """Return TVM's pass context for a device; tests of single kernels use it, too."""
    needless = list(_NEEDLESS_ON_CPUS) if device.kind.name == "llvm" else []
    return tvm.transform.PassContext(opt_level=3, disabled_pass=needless)


def _add_metadata(mod: IRModule, metadata: dict[str, Any]) -> IRModule:
    builder = relax.BlockBuilder(mod)
    with builder.function("_metadata", []):
        builder.emit_func_output(StringImm(json.dumps(metadata)))
    return builder.get()


def _storage(mod: IRModule, entries: tuple[str, ...]) -> Counter[int]:
    """Return the bytes of planned storage, counted by size, that all `entries` need together.

    TVM's allocator pools freed storage by size, so entries share storage of equal sizes and other
    sizes add up.
    """
    most: Counter[int] = Counter()
    for entry in entries:
        storage = _Storage()
        storage.visit_expr(mod[entry])
        most |= storage.sizes
    return most


@visitor
class _Storage(PyExprVisitor):
    """Visitor that counts the storage allocations of a function by size in bytes."""

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()

    def visit_call_(self, call: relax.Call) -> None:
        if getattr(call.op, "name", "") == "relax.vm.alloc_storage":
            shape = call.args[0]
            if isinstance(shape, relax.ShapeExpr):
                self.sizes[int(shape.values[0])] += 1
        super().visit_call_(call)
