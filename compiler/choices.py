"""The choices of a compilation: target, quantization scheme, dtypes, limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TypedDict

from wherry.errors import UsageError
from wherry.quant.mix import Mix, base_of, mix_of
from wherry.quant.scheme import DEFAULT as DEFAULT_QUANT
from wherry.quant.scheme import KEPT, TYPES, Encoder, Scheme, kept_in, portable
from wherry.targets.kernels.by_name import KernelsByName
from wherry.targets.target import TargetPreset
from wherry.targets.target import find as find_target

from .checkpoint.kept import NOTHING, KeptSchemes
from .library.build import Deployment
from .library.export import is_bidirectional, reads_source
from .load import Described

# Rows of an encoder's step at most, and so tokens of a text, unless the user asks for more: the
# memory of a step grows with its rows, and few models were trained on longer texts.
MOST_ROWS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a deployment that the user may set; None: the default."""

    context: int | None = None  # tokens of one sequence; None: the model's own maximum
    max_batch: int | None = None  # sequences in one step
    prefill_chunk: int | None = None  # rows of one step

    @classmethod
    def holding(cls, max_batch: int | None = None, prefill_chunk: int | None = None) -> Limits:
        """Return the default limits, raised to hold `max_batch` sequences, `prefill_chunk` rows."""
        usual = Deployment(context=1)
        rows = max(max_batch or 0, prefill_chunk or 0)
        return cls(
            max_batch=max_batch if (max_batch or 0) > usual.max_batch else None,
            prefill_chunk=rows if rows > usual.prefill_chunk else None,
        )

    def deployment(self, described: Described) -> Deployment:
        """Return the deployment with these limits, checked against the model.

        Raises:
            UsageError: a limit is not positive, or exceeds what the model supports.
        """
        given = {name: value for name, value in asdict(self).items() if value is not None}
        usual = {"context": described.config.context}
        one_step = is_bidirectional(described.config) or reads_source(described.config)
        if one_step:
            usual = _of_one_step(usual["context"], **given)
        deployment = Deployment(**usual | given)
        problems = [f"{n} is {v}, at least 1 is needed" for n, v in given.items() if v < 1]
        if deployment.context > described.config.longest:
            problems.append(
                f"context is {deployment.context}, the model's {described.config.ends} at "
                f"{described.config.longest}: --context takes 1 to {described.config.longest}"
            )
        if one_step and deployment.prefill_chunk < deployment.context:
            problems.append(
                f"prefill_chunk is {deployment.prefill_chunk}, and one step of an encoder has to "
                f"hold a text of {deployment.context} tokens (context)"
            )
        if deployment.prefill_chunk < deployment.max_batch:
            problems.append(
                f"prefill_chunk is {deployment.prefill_chunk}, it has to hold a row for each of "
                f"the {deployment.max_batch} sequences of max_batch"
            )
        if problems:
            raise UsageError("Limits that do not fit: " + "; ".join(problems) + ".")
        return deployment


def _of_one_step(
    longest: int, context: int | None = None, prefill_chunk: int | None = None, **_others: int
) -> dict[str, int]:
    """Return context and rows of a step where an encoder reads a text, which has to be in one."""
    usual = Deployment(context=1).prefill_chunk
    if context is None:
        context = min(longest, max(prefill_chunk or MOST_ROWS, 1))
    return {"context": context, "prefill_chunk": max(context, usual)}


class ArtifactArguments(TypedDict, total=False):
    """Keyword arguments of `ensure_artifact` and `forecast`; `ArtifactSpec` explains each."""

    target: str
    host: str | None
    quant: str | None
    kv_dtype: str
    activations: str
    format: str
    limits: Limits | None
    max_batch: int | None
    prefill_chunk: int | None
    calibration: str
    mtp: bool
    draft_head: str | None
    mmproj: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSpec:
    """What to compile for: target, host, quantization scheme, dtypes and limits."""

    target: str = "auto"  # name of a target preset; "auto": the fastest target of this machine
    # host CPU that drives the device: name or LLVM triple; None: the target's default
    host: str | None = None
    # Name of a quantization scheme or mix ("q4_k", "auto:4.5"), or "kept": the encoding of the
    # checkpoint. None: q4f16_1, of a quantized checkpoint its own encoding, as far as the target
    # has kernels for it.
    quant: str | None = None
    kv_dtype: str = "auto"  # a dtype of the target's `kv_dtypes`; "auto": the target's default
    # The dtype of activations in matrix products: "int8" (with 4-bit and 8-bit weights, on CPUs),
    # "float16" (on GPUs), "bf16" (on CPUs with AMX, for GEMM), "float"; "auto": what suits
    # target and scheme.
    activations: str = "auto"
    # "library", "objects", or "auto"; see TargetPreset.in_format.
    format: str = "auto"
    limits: Limits | None = None
    # Sizes that the engine will request at load. Without `limits`, the deployment is at least this
    # large.
    max_batch: int | None = None
    prefill_chunk: int | None = None
    # The text whose activations decide how linears are rounded: "builtin", a file, or "none": each
    # weight by itself. "auto": "builtin" for models of 50 million weights or more that take
    # minutes.
    calibration: str = "auto"
    # Whether the library has the checkpoint's block of multi-token prediction, which drafts tokens.
    mtp: bool = False
    # An EAGLE-3 head that drafts tokens in its place: a folder, or hf://ORG/NAME[@REVISION].
    draft_head: str | None = None
    # The projector file of a model in GGUF, which has its vision tower: a file, or
    # hf://ORG/NAME/FILE.gguf. "none": the model takes no images. None: the file next to the model
    # whose name contains "mmproj", if it fits.
    mmproj: str | None = None

    @property
    def drafts(self) -> bool:
        """Return whether the library drafts tokens.

        Raises:
            UsageError: two ways are chosen.
        """
        if self.mtp and self.draft_head is not None:
            raise UsageError("--mtp and --draft-head both draft tokens: leave out one of them.")
        return self.mtp or self.draft_head is not None

    @property
    def scheme(self) -> Encoder:
        """Return the quantization scheme of the weights; of a mix, that of its other weights.

        Raises:
            UsageError: there is no scheme of this name.
        """
        return base_of(DEFAULT_QUANT if self.quant in (None, KEPT) else self.quant)

    @property
    def mix(self) -> Mix | None:
        """Return the mix that the weights are encoded in; None: a scheme.

        Raises:
            UsageError: the target has no fast kernels for its type.
        """
        mix = mix_of(self.quant)
        if mix and self.preset.interface:
            raise UsageError(
                f"The libraries of {self.target} have one scheme for all weights, and --quant "
                f"{mix.name} has several. Type: --quant {mix.base.name}"
            )
        if mix and mix.type and mix.name not in self.types:
            known = ", ".join(sorted(self.types)) or "none of the block types"
            bits = mix.type.format.bits_per_weight
            raise UsageError(
                f"{self.preset.name} has no fast kernels for {mix.name}; it has them for {known}. "
                f"Type: --quant {mix.base.name}, or --quant auto:{bits:.1f}"
            )
        return mix

    @property
    def types(self) -> frozenset[str]:
        """Return the block types that weights can be encoded in.

        All libraries of the target have fast kernels for them, which read about their bits.
        """
        return self._in_all(lambda kernels: kernels.small_blocks) & TYPES.keys()

    def _in_all(self, blocks: Callable[[KernelsByName], frozenset[str]]) -> frozenset[str]:
        """Return the block formats that all libraries of the target have."""
        preset = self.preset
        if preset.interface:
            return frozenset()
        return frozenset.intersection(*(blocks(x.kernels) for x in (preset, *preset.variants)))

    @property
    def kept_schemes(self) -> KeptSchemes | None:
        """Return the schemes of checkpoints in which weights stay; None: all.

        Without `quant` these are the schemes that all libraries of the target have fast kernels
        for, among them those of `wherry.quant.scheme.portable`.
        """
        if self.quant == KEPT:
            return None
        if self.quant is not None:
            return NOTHING
        if self.preset.interface:
            return NOTHING
        matrices = kept_in(self._in_all(lambda kernels: kernels.fast_blocks))
        experts = kept_in(self._in_all(lambda kernels: kernels.expert_blocks))
        return KeptSchemes(portable() | matrices, portable() | experts)

    def in_scheme(self, name: str) -> ArtifactSpec:
        """This choice with the scheme of what is not kept, if it names none."""
        return replace(self, quant=name) if self.quant in (None, KEPT) else self

    @property
    def preset(self) -> TargetPreset:
        """The target with its dtypes and format.

        Raises:
            UsageError: no such target, or as `with_dtypes` and `TargetPreset.in_format`.
        """
        target = find_target(self.target, self.host).in_format(self.format)
        return with_dtypes(target, self.scheme, self.kv_dtype, self.activations)

    def deployment(self, described: Described) -> Deployment:
        """Return the limits that memory is planned for; raises as `Limits.deployment` does."""
        limits = self.limits or Limits.holding(self.max_batch, self.prefill_chunk)
        return limits.deployment(described)


def with_dtypes(
    preset: TargetPreset, scheme: Scheme, kv_dtype: str, activations: str
) -> TargetPreset:
    """Return the preset with the chosen dtypes of KV cache and activations.

    "auto" becomes the dtype that suits the scheme.

    Raises:
        UsageError: the target has no such kernels, or int8 was chosen with float weights.
    """
    suited = preset.suited_to(scheme.float_dtype)
    kv_dtype = suited.kv_dtype if kv_dtype == "auto" else kv_dtype
    if scheme.kernel_spec()["scheme"] not in ("q4", "q8"):
        if activations == "int8":
            raise UsageError(
                f"Activations 'int8' were requested; weights in {scheme.name} are floats, and are "
                "multiplied by floats. Type: --activations auto, or --quant q8f16_1"
            )
        if activations == "auto" and suited.activations == "int8":
            activations = "float"
    if activations == "auto":
        activations = suited.activations
    return preset.with_kv_dtype(kv_dtype).with_activations(activations)
