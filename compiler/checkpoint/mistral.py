"""Reads models in the layout that Mistral publishes: params.json and consolidated.safetensors.

    params.json                                       configuration, as mistral-inference names it
    consolidated.safetensors, or parts with an index  tensors, as "layers.0.attention.wq.weight"
    tekken.json, or tokenizer.model with a version    tokenizer

As a GGUF file (gguf/folder.py), such a folder gets a folder in Hugging Face's layout without
weights, and a record of where they are. Rows of q and k are in pairs, which `Pairs` undoes. Source
of the fields: `args.py` of mistral-inference.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.base.json_file import read_object
from wherry.cache.entries import safe
from wherry.errors import ModelError, listing, shown
from wherry.hub.file_names import MISTRAL_PARAMS, MISTRAL_RECORD, TEKKEN
from wherry.models.weights.rules import Pairs

from .folder import write_folder
from .tensors import Checkpoint, TensorFile

_FIELDS = {  # field of params.json -> of config.json
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "hidden_dim": "intermediate_size",
    "norm_eps": "rms_norm_eps",
    "vocab_size": "vocab_size",
}
# Fields without effect on one process' computation, and those that are read below.
_IGNORED = frozenset({"max_batch_size", "ragged_attention", "use_cache"})
_READ = frozenset(
    "rope_theta sliding_window _sliding_window max_position_embeddings max_seq_len tied_embeddings "
    "moe yarn llama_4_scaling vision_encoder".split()
)
_ACCEPTED: Mapping[str, tuple[Any, ...]] = {
    "model_type": ("transformer",),
    "activation": ("silu",),
    "causal": (True,),
    "use_biases": (False,),
    "lora": (None,),
    "quantization": (None,),
    "rope_scaling": (None,),
    "q_lora_rank": (None,),
}
_CONTEXT = 32768  # tokens, where params.json does not say
_OUTER = {
    "tok_embeddings.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
}
_IN_LAYER = re.compile(r"layers\.(\d+)\.(.+)\.weight")
_OF_EXPERT = re.compile(r"feed_forward\.(gate|experts\.\d+\.w[123])")
_PAIRED = re.compile(r"layers\.\d+\.attention\.w[qk]\.weight")
_TOKENIZER = re.compile(r"tokenizer\.model(\.v\d+)?")


def unfold(source: Path, home: Path) -> Path:
    """Return the folder in Hugging Face's layout of a folder of Mistral's; update it if needed.

    Raises:
        ModelError: params.json describes no model that is read.
    """
    place = hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:12]
    folder = home / f"{safe(source.resolve().name)}-mistral-{place}"
    config = config_of(source)
    files = _side_files(source, config)
    key = hashlib.sha256(b"".join(n.encode() + c for n, c in sorted(files.items()))).hexdigest()
    record = json.dumps({"folder": str(source.resolve()), "key": key}) + "\n"
    files[MISTRAL_RECORD] = record.encode()
    what = f"the configuration of {source.name}"
    return write_folder(folder, MISTRAL_RECORD, key, lambda: files, what)


def config_of(source: Path) -> dict[str, Any]:
    """Return the fields of config.json for a folder's params.json.

    Raises:
        ModelError: lists missing and unknown fields, and values that are not supported.
    """
    path = source / MISTRAL_PARAMS
    try:
        given = read_object(path)
    except (OSError, ValueError) as e:
        raise ModelError(f"{path} cannot be read: {e}") from e
    problems = [f"{name}: missing" for name in _FIELDS if name not in given]
    for name, value in given.items():
        if name in _ACCEPTED:
            if value not in _ACCEPTED[name]:
                supported = " or ".join(map(repr, _ACCEPTED[name]))
                problems.append(f"{name}: found {shown(value)}, supported is {supported}")
        elif name not in _FIELDS and name not in _READ | _IGNORED:
            problems.append(f"{name}: {shown(value)} is not known")
    for name in ("moe", "yarn", "llama_4_scaling"):
        if not isinstance(given.get(name) or {}, dict):
            problems.append(f"{name}: found {shown(given[name])}, expected an object")
    if problems:
        raise ModelError(f"{path} does not describe a model that is read:\n{listing(problems)}")
    text = _text_config(path, given)
    if not given.get("vision_encoder"):
        return text
    return {
        "model_type": "mistral3",
        "architectures": ["Mistral3ForConditionalGeneration"],
        "text_config": text,
    }


def _text_config(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    window = given.get("sliding_window") or given.get("_sliding_window")
    theta = given.get("rope_theta") or (10000.0 if window else 1000000.0)
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": theta}
    kind, own = "mistral", {}
    if moe := given.get("moe"):
        kind = "mixtral"
        _require(path, "moe", moe, ("num_experts", "num_experts_per_tok"))
        own = {"num_local_experts": moe["num_experts"]}
        own["num_experts_per_tok"] = moe["num_experts_per_tok"]
    if yarn := given.get("yarn"):
        names = ("factor", "original_max_position_embeddings", "beta", "alpha", "apply_scale")
        _require(path, "yarn", yarn, names)
        # With both scales alike, attention has none.
        mscale = {} if yarn["apply_scale"] else {"mscale": 1.0, "mscale_all_dim": 1.0}
        rope |= {"rope_type": "yarn", "beta_fast": yarn["beta"], "beta_slow": yarn["alpha"]}
        rope |= {name: yarn[name] for name in names[:2]} | mscale
    if growth := given.get("llama_4_scaling"):
        kind = "ministral3"
        _require(path, "llama_4_scaling", growth, ("beta", "original_max_position_embeddings"))
        original = rope.get("original_max_position_embeddings")
        if moe or growth["original_max_position_embeddings"] != original:
            raise ModelError(
                f"{path}: llama_4_scaling is read with the original_max_position_embeddings of "
                f"yarn, {shown(original)}, and without moe; found {shown(growth)}"
            )
        rope["llama_4_scaling_beta"] = growth["beta"]
    classes = {"mistral": "Mistral", "mixtral": "Mixtral", "ministral3": "Ministral3"}
    return {
        "model_type": kind,
        "architectures": [f"{classes[kind]}ForCausalLM"],
        **{hf_name: given[mistral_name] for mistral_name, hf_name in _FIELDS.items()},
        "max_position_embeddings": given.get("max_position_embeddings")
        or given.get("max_seq_len")
        or _CONTEXT,
        "sliding_window": window or None,
        "tie_word_embeddings": bool(given.get("tied_embeddings", False)),
        "rope_parameters": rope,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **own,
    }


def _require(path: Path, name: str, value: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    if value.keys() != set(fields):
        raise ModelError(f"{path}: {name} is {shown(dict(value))}, expected {', '.join(fields)}")


def _side_files(source: Path, config: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the contents of the made folder's files by name; tokenizers are converted later."""
    ends = {"bos_token_id": 1, "eos_token_id": 2}
    files = {
        "config.json": json.dumps(config, indent=2).encode(),
        "generation_config.json": json.dumps(ends).encode(),
    }
    kept = (TEKKEN, "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
    files |= {n: (source / n).read_bytes() for n in kept if (source / n).is_file()}
    models = sorted(p for p in source.glob("tokenizer.model*") if _TOKENIZER.fullmatch(p.name))
    if models and TEKKEN not in files:
        files["tokenizer.model"] = models[-1].read_bytes()
    return files


@dataclass(frozen=True, slots=True)
class _Renamed(Checkpoint):
    """Mistral's tensors under Hugging Face's names."""

    main: Checkpoint
    names: Mapping[str, str]  # name -> Mistral's
    order: Pairs  # of the rows of q and k

    def read_raw(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See `Checkpoint.read_raw`."""
        own = self.names[name]
        if not _PAIRED.fullmatch(own):
            return self.main.read_raw(own, start, stop)
        stop = self.tensors[name].shape[0] if stop is None else stop
        rows = self.order.source(np.arange(start, stop))
        if not len(rows):
            return self.main.read_raw(own, start, stop)
        first = int(rows.min())
        return self.main.read_raw(own, first, int(rows.max()) + 1)[rows - first]


def renamed(main: Checkpoint, config: Mapping[str, Any]) -> Checkpoint:
    """Return the tensors of Mistral's checkpoint as Hugging Face's are; `config`: its config.json.

    Raises:
        ModelError: q or k have no whole number of heads.
    """
    head = int(config.get("text_config", config)["head_dim"])
    names = {_name_of(name): name for name in main.tensors}
    wrong = [
        f"{own} {list(main.tensors[own].shape)}"
        for own in names.values()
        if _PAIRED.fullmatch(own) and not _has_heads(main.tensors[own], head)
    ]
    if wrong:
        raise ModelError(f"{main.folder} has no heads of {head} dimensions in:\n{listing(wrong)}")
    return _Renamed(
        folder=main.folder,
        tensors={name: main.tensors[own] for name, own in names.items()},
        files=main.files,
        fingerprint=main.fingerprint,
        main=main,
        names=names,
        order=Pairs(head, head),
    )


def _has_heads(tensor: TensorFile, head: int) -> bool:
    return bool(head) and head % 2 == 0 and tensor.shape[:1] != () and tensor.shape[0] % head == 0


def _name_of(name: str) -> str:
    """Return a tensor's name in Hugging Face's layout; others' (vision) stay as they are."""
    if name in _OUTER:
        return _OUTER[name]
    if not (match := _IN_LAYER.fullmatch(name)):
        return name
    layer, part = match.groups()
    if moe := _OF_EXPERT.fullmatch(part):
        part = f"block_sparse_moe.{moe[1]}"
    return f"model.layers.{int(layer)}.{_LAYER.get(part, part)}.weight"
