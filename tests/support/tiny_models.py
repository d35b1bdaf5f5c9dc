"""Tiny random models as Hugging Face saves them, compiled once a session, and run step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
import tvm
from tvm import relax

from wherry.artifact.manifest import Manifest, read_manifest
from wherry.artifact.variants import library_for
from wherry.compiler.api import Limits, ensure_artifact
from wherry.compiler.weight_cache import load_state
from wherry.quant.scheme import Scheme

COMMON: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# No scheme changes them.
ROUTERS = (".gate.weight", ".gate.wg.weight", "shared_expert_gate.weight", ".router.weight")
ROUTERS += ("in_proj_a.weight", "in_proj_b.weight", "in_proj_ba.weight", "A_log", "dt_bias")
ROUTERS += ("conv1d.weight", "conv.conv.weight", "conv.conv.bias", ".g_proj.weight")
ROUTERS += (".x_proj.weight", ".dt_proj.weight")
ROUTERS += ("conv_1d.weight", "input_gate_weight", "recurrent_gate_weight", "recurrent_param")
ROUTERS += (".f_a_proj.weight", ".f_b_proj.weight", ".b_proj.weight")
ROUTERS += (".router.bias", ".router.layer.weight", ".router.proj.weight", ".per_expert_scale")
ROUTERS += (".modality_router.weight", "_coefs.weight", ".correct_output_scale")
ROUTERS += ("relative_attention_bias.weight",)
# The weights of all experts in one tensor.
EXPERTS = ("experts.gate_up_proj", "experts.up_proj", "experts.down_proj")
# Text models without a class of their own: the whole model's type, and its other fields.
WITH_PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "muse_glimmer_text": (
        "muse_glimmer",
        {
            "vision_config": {
                "hidden_size": 32,
                "intermediate_size": 48,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
            },
            "out_hidden_size": 128,
            "projector_hidden_size": 32,
        },
    )
}
IMAGES_AND_TEXT = transformers.AutoModelForImageTextToText
# Their norms multiply by 1 + weight.
OFFSET_NORMS = ("gemma_", "gemma2_", "gemma3_", "nemotron_", "qwen3_5_", "qwen3_next_")
OFFSET_NORMS += ("recurrent_gemma_",)


def save(folder: Path, model_type: str, seed: int = 0, **config: Any) -> torch.nn.Module:
    """Save a random float32 model with norms away from one; returns it, ready to evaluate."""
    plain = model_type == "nemotron_h"  # unlike Nemotron
    offset = 1 if f"{model_type}_".startswith(OFFSET_NORMS) and not plain else 0
    torch.manual_seed(seed)
    model = random_model(model_type, {**COMMON, **config}).float().eval()
    randomise(model, offset)
    model.save_pretrained(folder)
    return model


def random_model(model_type: str, fields: dict[str, Any]) -> torch.nn.Module:
    """A random model; of a type that transformers has only as a part of another, this whole one."""
    if model_type not in WITH_PARTS:
        cfg = transformers.AutoConfig.for_model(model_type, **fields)
        listed = type(cfg) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING  # Mistral 4 is elsewhere
        auto = transformers.AutoModelForCausalLM if listed else IMAGES_AND_TEXT
        return auto.from_config(cfg)
    full_type, vision = WITH_PARTS[model_type]
    cfg = transformers.AutoConfig.for_model(
        full_type, text_config={"model_type": model_type, **fields}, **vision
    )
    return IMAGES_AND_TEXT.from_config(cfg)


def randomise(model: torch.nn.Module, offset: int) -> None:
    """Random parameters; norms multiply by about one, which `offset` is part of.

    Where scores have no factor, the norm of q has it: random heads would see one token each.
    """
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name or ".ln_" in name or name.endswith("scale"):
                own = 0 if name.endswith("linear_attn.norm.weight") else offset
                p.copy_(1 - own + 0.2 * torch.randn_like(p))
            elif name.endswith("bias"):
                p.copy_(0.1 * torch.randn_like(p))
            elif name.endswith(".D"):
                p.copy_(1 + 0.2 * torch.randn_like(p))
            elif name.endswith(
                ("A_log", "recurrent_param")
            ):  # states that last, and states that are soon forgotten
                p.copy_(1.5 * torch.randn_like(p) - 1)
            elif name.endswith(("conv1d.weight", "conv_1d.weight", "conv.conv.weight")):
                p.copy_(torch.randn_like(p) * 0.5)
            elif name.endswith("modality_router.weight"):  # its input is divided by the size
                p.copy_(torch.randn_like(p) * p.shape[1] ** 0.5 / 4)
            elif name.endswith("_coefs.weight"):
                p.copy_(torch.randn_like(p) * 0.3)
            else:
                p.copy_(torch.randn_like(p) * 0.08)
        for module in model.modules():
            if hasattr(module, "q_norm") and getattr(module, "scaling", None) == 1.0:
                module.q_norm.weight.mul_(module.head_dim**-0.5)
        for name, p in model.named_buffers():
            if name.endswith(("e_score_correction_bias", "expert_bias")):
                p.copy_(0.1 * torch.randn_like(p))
            elif name.endswith("layer_scalar"):
                p.copy_(1 + 0.2 * torch.randn_like(p))


def round_weights(model: torch.nn.Module, scheme: Scheme) -> None:
    """Give `model` the weights that are left of its own when `scheme` stored them."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(ROUTERS):
                continue
            if scheme.quantizes(_weight_name(name), tuple(p.shape)):
                left = _rounded(name, p, model.config, scheme)
                p[: exact_from(model, name)] = left[: exact_from(model, name)]
            else:
                p.copy_(p.half().float() if scheme.float_dtype == "float16" else p)


def exact_from(model: torch.nn.Module, name: str) -> int | None:
    """The first of the rows that no scheme changes: the last of Mamba-2's give the steps."""
    if not name.endswith(".in_proj.weight"):
        return None
    mixer = model.get_submodule(name.removesuffix(".in_proj.weight"))
    rates = getattr(mixer, "A_log", None)
    return None if rates is None or rates.ndim != 1 else -len(rates)


def _rounded(name: str, p: torch.Tensor, config: Any, scheme: Scheme) -> torch.Tensor:
    """What is left of a weight, quantized along the axis that we quantize it along."""

    def left(w: torch.Tensor) -> torch.Tensor:
        decoded = scheme.decode(scheme.encode(w.contiguous().numpy()), w.shape[-1])
        return torch.from_numpy(decoded)

    # [E, in, out]
    if config.model_type in ("gpt_oss", "llama4_text") and name.endswith(EXPERTS):
        return left(p.transpose(1, 2)).transpose(1, 2)
    if config.model_type == "gpt2" and ".h." in name:  # [in, out], too
        return left(p.T).T
    if "kv_b_proj" in name:  # the keys' part of a head is used transposed
        heads = p.reshape(config.num_attention_heads, -1, p.shape[-1])
        keys, values = heads.split([config.qk_nope_head_dim, config.v_head_dim], 1)
        keys = left(keys.transpose(1, 2)).transpose(1, 2)
        return torch.cat([keys, left(values)], 1).reshape(p.shape)
    return left(p)


@contextmanager
def rounded_activations(model: torch.nn.Module, scheme: Scheme) -> Iterator[None]:
    """Round what `model` multiplies by weights that `scheme` quantizes, to int8 as CPUs do.

    32 elements of a row share a scale, the least power of two >= their largest / 127. GPT-2's
    transposed linears, and keys and values that DeepSeek makes of latent ones, stay as they are.
    """
    quantized = {
        p.untyped_storage().data_ptr(): exact_from(model, name)
        for name, p in model.named_parameters()
        if not name.endswith(ROUTERS) and scheme.quantizes(_weight_name(name), tuple(p.shape))
    }
    model.set_experts_implementation("eager")  # which calls `linear` for each expert
    linear = torch.nn.functional.linear

    def rounding(x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
        own = weight.untyped_storage().data_ptr()
        if own not in quantized:
            return linear(x, weight, bias)
        y = linear(_int8(x), weight, bias)
        if first := quantized[own]:
            y[..., first:] = linear(x, weight, bias)[..., first:]
        return y

    torch.nn.functional.linear = rounding
    try:
        yield
    finally:
        torch.nn.functional.linear = linear


def _int8(x: torch.Tensor) -> torch.Tensor:
    """What is left of rows [..., K] after their rounding."""
    groups = torch.nn.functional.pad(x, (0, -x.shape[-1] % 32)).unflatten(-1, (-1, 32))
    most = groups.abs().amax(-1, keepdim=True) / 127
    scale = torch.exp2(torch.ceil(torch.log2(most.clamp(2.0**-60, 2.0**60))))
    return (torch.round(groups / scale) * scale).flatten(-2)[..., : x.shape[-1]]


def _weight_name(name: str) -> str:
    """What we call a parameter: those of all experts in one have no suffix."""
    return f"{name}.weight" if name.endswith(EXPERTS) else name


def _rows(stored: dict[str, np.ndarray], name: str) -> np.ndarray:
    """A stored tensor, or "x[2:5]", rows of one."""
    stored_name, _, rows = name.partition("[")
    first, _, stop = rows.removesuffix("]").partition(":")
    return stored[stored_name][int(first) : int(stop)] if rows else stored[stored_name]


@dataclass
class Sequence:
    """One sequence's pages, length, slot of recurrent state, and pages and length of its source."""

    pages: list[int]
    length: int = 0
    slot: int = 0
    source_pages: list[int] = field(default_factory=list)
    source_length: int = 0


@dataclass
class Runner:
    """A compiled folder in TVM's virtual machine; state and pages are kept here, in the open."""

    folder: Path
    pages: int = 64
    device: str = "cpu"
    sequences: dict[int, Sequence] = field(default_factory=dict)
    library: Callable[[Manifest], str | None] = library_for

    def __post_init__(self) -> None:
        manifest = read_manifest(self.folder)
        module = tvm.runtime.load_module(str(self.folder / (self.library(manifest) or "none")))
        self.here = tvm.device(self.device, 0)
        # On a device the VM wants the host too, for shapes.
        devices = [self.here] if self.device == "cpu" else [self.here, tvm.cpu()]
        self.vm = relax.VirtualMachine(module, devices)
        self.metadata = json.loads(str(self.vm["_metadata"]()))
        stored = load_state(self.folder)
        self.params = [self._parameter(entry, stored) for entry in self.metadata["params"]]
        # Stale, finite rubbish: what a page held before must never matter.
        random = np.random.default_rng(7)
        self.state = [
            tvm.runtime.tensor(
                random.normal(size=(self.pages, *state["shape"])).astype(state["dtype"]), self.here
            )
            for state in self.metadata["state"]
            for _ in range(state["layers"])
        ]
        self.slots = list(range(self.pages))  # free ones
        self.groups = self.metadata["groups"]
        self.free = list(np.random.default_rng(5).permutation(self.pages))

    def see(
        self, patches: np.ndarray, positions: np.ndarray | None = None, **more: np.ndarray
    ) -> np.ndarray:
        """Compute the features of a tile: its patches float32 [n, c], and what the tower takes."""
        owners, starts = np.zeros(len(patches), np.int32), np.array([0, len(patches)], np.int32)
        more |= {"patches": patches, "sequences": owners, "query_indptr": starts}
        arrays = more if positions is None else more | {"positions": positions}
        names = self.metadata["inputs"]
        inputs = [tvm.runtime.tensor(arrays[name], self.here) for name in names]
        features: np.ndarray = self.vm["see"](*inputs, *self.params).numpy()
        return features

    def _parameter(self, entry: dict[str, Any], stored: dict[str, np.ndarray]) -> Any:
        sources = [tvm.runtime.tensor(_rows(stored, name), self.here) for name in entry["from"]]
        if "pack" not in entry:
            return sources[0]
        packed = self.vm[entry["pack"]](*sources)
        packed = packed[entry["index"]] if "index" in entry else packed
        assert list(packed.shape) == entry["shape"] and str(packed.dtype) == entry["dtype"]
        return packed

    def _begin(self) -> Sequence:
        """A sequence without rows, whose recurrent state is zero."""
        sequence = Sequence([], slot=self.slots.pop())
        for state in self._recurrent():
            self._write(state, sequence.slot, np.zeros(state.shape[1:], state.dtype))
        return sequence

    def _recurrent(self) -> list[Any]:
        kinds = [s["kind"] for s in self.metadata["state"] for _ in range(s["layers"])]
        return [s for s, kind in zip(self.state, kinds, strict=True) if kind == "recurrent"]

    def _write(self, state: Any, slot: int, value: np.ndarray) -> None:
        array = state.numpy()
        array[slot] = value
        state.copyfrom(array)

    def copy_slot(self, parent: Any, name: Any) -> None:
        """Give a sequence the recurrent state of another, as the engine does with a snapshot."""
        for state in self._recurrent():
            own = state.numpy()[self.sequences[parent].slot]
            self._write(state, self.sequences[name].slot, own)

    def fork(self, parent: Any, name: Any, length: int) -> None:
        """A sequence that begins with `length` tokens of another, whole pages, and shares them."""
        pages, rest = divmod(length, self.metadata["page_size"])
        assert rest == 0 and length <= self.sequences[parent].length
        pages_of = self.sequences[parent].pages[:pages]
        self.sequences[name] = replace(self._begin(), pages=pages_of, length=length)

    def step(
        self,
        rows: dict[int, list[int]],
        entry: str = "forward",
        images: dict[int, list[int]] | None = None,
        features: np.ndarray | None = None,
        rope_positions: dict[int, np.ndarray] | None = None,
        last_visible: dict[int, np.ndarray] | None = None,
    ) -> dict[int, np.ndarray]:
        """Feed tokens to sequences, all in one batch; the results [tokens, ...] of each.

        Of a model that sees, `images` has the row of `features` [f, d] of each token, or -1, and
        with M-RoPE `rope_positions` what is not three times the token's position, [tokens, 3];
        `last_visible` has the last position that each row attends to, if not its own.
        """
        size = self.metadata["page_size"]
        tokens, positions, owners, starts, slots, lengths = [], [], [], [0], [], []
        ids: list[list[int]] = [[] for _ in self.groups]
        page_starts: list[list[int]] = [[0] for _ in self.groups]
        for number, (name, new) in enumerate(rows.items()):
            if name not in self.sequences:
                self.sequences[name] = self._begin()
            sequence = self.sequences[name]
            slots.append(sequence.slot)
            first = 0 if entry == "encode" else sequence.length  # position of the first row
            tokens += new
            positions += range(first, first + len(new))
            owners += [number] * len(new)
            starts.append(len(tokens))
            if entry == "encode":
                sequence.source_length = len(new)
            else:
                sequence.length += len(new)
            lengths.append(sequence.source_length)
            for pages, length in (
                (sequence.pages, sequence.length),
                (sequence.source_pages, sequence.source_length),
            ):
                while len(pages) * size < length:
                    pages.append(int(self.free.pop()))
            for own, begins, group in zip(ids, page_starts, self.groups, strict=True):
                # Groups share the numbers: each has tensors of its own. What lies behind a window
                # may have been given to others.
                window = group["window"]
                behind = max(first + 1 - window, 0) // size if window else 0
                pages = sequence.source_pages if group["kind"] == "cross" else sequence.pages
                own += [-1] * behind + pages[behind:]
                begins.append(len(own))
        logit_rows = list(range(len(tokens)))
        tables = [array for pair in zip(page_starts, ids, strict=True) for array in pair]
        image_rows = [
            row for name, new in rows.items() for row in (images or {}).get(name, [-1] * len(new))
        ]
        by_axis = np.repeat(np.array(positions, np.int32)[:, None], 3, 1)
        bounds = np.array(positions, np.int32)
        for number, name in enumerate(rows):
            own = slice(starts[number], starts[number + 1])
            if rope_positions and name in rope_positions:
                by_axis[own] = rope_positions[name]
            if last_visible and name in last_visible:
                bounds[own] = last_visible[name]
        optional = {"slots": slots, "source_lengths": lengths, "image_rows": image_rows}
        optional |= {"rope_positions": by_axis, "last_visible": bounds}
        before, seen, turned, bound, behind_tables = (
            [optional[name]] if name in self.metadata["inputs"] else []
            for name in ("source_lengths", "image_rows", "rope_positions", "last_visible", "slots")
        )
        arrays = [tokens, positions, owners, starts, *before, *seen, *turned, *bound]
        arrays += [*tables, *behind_tables, logit_rows]
        inputs = [tvm.runtime.tensor(np.array(a, np.int32), self.here) for a in arrays]
        if size_of_feature := self.metadata.get("image_features"):
            store = np.zeros((1, size_of_feature), np.float32) if features is None else features
            inputs.append(tvm.runtime.tensor(store, self.here))
        results = self.vm[entry](*inputs, *self.state, *self.params).numpy()
        return {name: results[starts[i] : starts[i + 1]] for i, name in enumerate(rows)}


def compiled(
    folder: Path,
    quant: str = "q0f32",
    target: str = "cpu",
    kv_dtype: str = "float32",
    activations: str = "auto",
    context: int | None = None,
    mtp: bool = False,
    draft_head: str | None = None,
) -> Path:
    """Compile with room for the logits of every row; the cache is exact unless asked otherwise."""
    return ensure_artifact(
        str(folder),
        quant=quant,
        target=target,
        kv_dtype=kv_dtype,
        activations=activations,
        limits=Limits(context=context, max_batch=256, prefill_chunk=256),
        mtp=mtp,
        draft_head=draft_head,
    )
