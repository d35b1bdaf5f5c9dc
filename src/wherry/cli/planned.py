"""Computes the memory of a model from its manifest, or from a forecast of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wherry.artifact.manifest import MANIFEST, read_manifest
from wherry.errors import ResourceError
from wherry.runtime.load import loading, memory, program_memory
from wherry.runtime.load.options import LoadOptions, for_compiler

if TYPE_CHECKING:
    from wherry.compiler.load import Described

DRAFT_ROWS = 16  # rows of a step for draft tokens, besides one row per request
_LOGIT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The memory that a run of a model needs: bytes, except for tokens and names."""

    name: str
    target: str
    quantization: str
    parameters: int
    bits: float  # of a parameter in memory, on average
    # bytes of the process without a model; None: the system does not report them
    program: int | None
    weights: int
    step: int
    kv_per_token: int
    kv_dtype: str
    kv_tokens: int
    context: int  # tokens of one sequence
    model_context: int
    largest: int | None  # tokens of the context that --context auto selects
    max_batch: int
    prefill_chunk: int
    free: int | None
    where: str
    state: int = 0  # of recurrent layers, with snapshots
    images: int = 0  # of the model's tower, and of the features of images

    @property
    def cache(self) -> int:
        """Return the bytes of the KV cache."""
        return self.kv_per_token * self.kv_tokens

    @property
    def total(self) -> int:
        """Return the peak memory in bytes."""
        model = self.weights + self.step + self.cache + self.state + self.images
        return (self.program or 0) + model

    def record(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self) | {"cache": self.cache, "total": self.total}


@dataclass(frozen=True, slots=True)
class Facts:
    """What memory planning needs to know about one model."""

    declared: memory.Declared
    target: Mapping[str, Any]
    quantization: str
    described: Described
    parameters: int  # number of parameters before quantization
    shares: Mapping[str, float]  # of the parameters, by the scheme of those with one of their own

    @property
    def kv_dtype(self) -> str:
        """Return the KV cache's dtype, of older folders by its bytes per token; "none" without."""
        config = self.described.config
        if not self.declared.memory["kv_per_token"]:
            return "none"
        if "kv_dtype" in self.declared.deployment:
            return str(self.declared.deployment["kv_dtype"])
        layers = range(config.num_hidden_layers)
        attends = getattr(config, "attends", None)  # of families with recurrent layers
        shapes = [config.attention_shape(i) for i in layers if attends is None or attends(i)]
        numbers = sum(2 * s.kv_heads * s.head_dim for s in shapes if s.kv != "none")
        size, rest = divmod(self.declared.memory["kv_per_token"], numbers)
        return {4: "float32", 2: "float16"}.get(0 if rest else size, "int8")


def needs(model: str, options: LoadOptions) -> tuple[Needs, ResourceError | None]:
    """Compute the memory of `model` with these options, and the error if it does not fit.

    Raises:
        UsageError: an option is out of range, or does not fit a compiled folder.
        ModelError: there is no such model.
    """
    facts, program = _look(model, options)
    draft = options.get("draft")
    own: LoadOptions = {**options, "mtp": False, "draft_head": None, "mmproj": None}
    drafts = _look(str(draft), own)[0] if draft else None
    there = _room(facts, program)
    try:
        config, problem = _config(facts, options, there, drafts), None
    except ResourceError as e:
        problem = e
        config = _config(facts, options, memory.Room(None), drafts)
    models = [facts] if drafts is None else [facts, drafts]
    rows = config["max_batch"] + (DRAFT_ROWS if _may_draft(facts, options) else 0)
    context = int(facts.declared.deployment["context"])
    needs = Needs(
        name=facts.declared.name,
        target=str(facts.target["name"]),
        quantization=facts.quantization,
        parameters=facts.parameters,
        bits=8 * facts.declared.memory["weights"] / max(facts.parameters, 1),
        program=program,
        weights=sum(m.declared.memory["weights"] for m in models),
        step=sum(_step(m, rows) for m in models),
        kv_per_token=sum(m.declared.memory["kv_per_token"] for m in models),
        kv_dtype=facts.kv_dtype,
        kv_tokens=config["kv_tokens"],
        context=min(config["context"], config["kv_tokens"]),
        model_context=context,
        largest=None if problem else _largest(facts, there, drafts),
        max_batch=config["max_batch"],
        prefill_chunk=config["prefill_chunk"],
        free=None if there.free is None else there.free + (program or 0),
        where=there.where,
        state=sum(
            memory.recurrent(m.declared, config["max_batch"], config["kv_tokens"]) for m in models
        ),
        images=memory.of_images(facts.declared, config["context"]),
    )
    return needs, problem


def _may_draft(facts: Facts, options: LoadOptions) -> bool:
    drafts = options.get("draft") or "mtp" in facts.declared.capabilities
    most = options.get("max_drafts")
    return bool(drafts) if most is None else most > 0


def _look(model: str, options: LoadOptions) -> tuple[Facts, int | None]:
    """Describe a model, and measure the memory of a process that is about to load it."""
    with look(model, options) as (facts, folder):
        compiled = (folder / MANIFEST).is_file()
        return facts, program_memory.measured(folder, compiler=not compiled)


@contextmanager
def look(model: str, options: LoadOptions) -> Iterator[tuple[Facts, Path]]:
    """Describe a model for memory planning; yield it, and its compiled folder or its small files'.

    Args:
        model: MODEL of the command line.
        options: options of its compilation.

    Raises:
        UsageError: an option does not fit a compiled folder.
    """
    from wherry.compiler.forecast import described_folder, forecast

    given = Path(model).expanduser()
    if (given / MANIFEST).is_file():
        loading.resolve(model, **for_compiler(options))
        yield _of_compiled(given), given
        return
    chosen: dict[str, Any] = {**for_compiler(options)}
    with described_folder(model, chosen.get("mmproj")) as folder:
        declared = forecast(model, folder, **chosen)
        own = shares_of(declared.plan, declared.shapes)
        target, label = declared.target, declared.quantization
        yield (
            Facts(declared, target, label, declared.described, declared.parameters, own),
            folder.path,
        )


def _of_compiled(folder: Path) -> Facts:
    from wherry.compiler.checkpoint.folder import read_folder
    from wherry.compiler.library.export import parameters
    from wherry.compiler.load import describe

    manifest, described = read_manifest(folder), describe(read_folder(folder))
    shapes = parameters(described.arch, described.config, described.entries)
    count = sum(map(prod, shapes.values()))
    own = shares_of(manifest.plan, shapes)
    return Facts(manifest, manifest.target, manifest.quantization, described, count, own)


def shares_of(
    plan: Mapping[str, Sequence[Sequence[Any]]], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, float]:
    """Return the share of the parameters that each scheme of a plan stores, the largest first.

    Args:
        plan: parts of each parameter, as in the manifest.
        shapes: shapes of all parameters by name.
    """
    count: Counter[str] = Counter()
    for name, sources in plan.items():
        for rows, scheme in sources:
            shape = shapes.get(name, ())
            count[scheme] += prod(shape) if len(sources) == 1 else rows * shape[-1]
    total = max(sum(map(prod, shapes.values())), 1)
    return {scheme: number / total for scheme, number in count.most_common()}


def _room(facts: Facts, program: int | None) -> memory.Room:
    """Return the memory that is left after the program has started."""
    there = memory.room(loading.device_name(facts.target))
    if there.free is None or program is None:
        return there
    return replace(there, free=max(0, there.free - program))


def _config(
    facts: Facts, options: LoadOptions, there: memory.Room, drafts: Facts | None
) -> dict[str, Any]:
    """Return the engine's configuration; if free memory is unknown, every context fits."""
    declared = drafts.declared if drafts else None
    config = loading.sized(facts.declared, options, there, declared)
    return {"kv_tokens": config["context"] * config["max_batch"], **config}


def _largest(facts: Facts, there: memory.Room, drafts: Facts | None) -> int | None:
    return memory.largest_context(facts.declared, there, drafts.declared if drafts else None)


def _step(model: Facts, rows: int) -> int:
    """Return the bytes of a step's tensors; result rows that no request uses are never touched."""
    if "forward" not in model.described.entries:
        return model.declared.memory["workspace"]
    has = int(model.declared.deployment["logit_rows"])
    spare = max(0, has - rows) * int(model.described.config.vocab_size) * _LOGIT_BYTES
    return model.declared.memory["workspace"] - spare
