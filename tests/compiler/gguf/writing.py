"""Writes tiny models in GGUF with the package's own writer and its own table of names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file, save_file

from ...support.random_blocks import random_blocks

KINDS = {"normal": 1, "unknown": 2, "control": 3, "user": 4, "byte": 6}
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"


def write(
    file: Path,
    architecture: str,
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    kind: str = "F32",
    kinds: Mapping[str, str] | None = None,
    vocabulary: Callable[[gguf.GGUFWriter], None] | None = None,
) -> Path:
    """A file with these tensors; matrices are of the type `kind`, vectors float32.

    So are matrices whose rows are not whole blocks of the type. A matrix whose name contains a key
    of `kinds` has random blocks of that type instead.
    """
    writer = gguf.GGUFWriter(file, architecture)
    for key, value in metadata.items():
        full_name = key.startswith(("general.", "split."))
        _add(writer, key if full_name else f"{architecture}.{key}", value)
    (vocabulary or letters)(writer)
    for name, array in tensors.items():
        own = [k for part, k in (kinds or {}).items() if part in name and array.ndim > 1]
        if own and own[0] != "F32":
            to = gguf.GGMLQuantizationType[own[0]]
            rows = array.size // array.shape[-1]
            raw = random_blocks(own[0], rows, array.shape[-1], seed=len(name))
            writer.add_tensor(name, raw.reshape(*array.shape[:-1], -1), raw_dtype=to)
        elif array.ndim > 1 and kind != "F32" and array.shape[-1] % _block(kind) == 0:
            to = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(name, gguf.quants.quantize(array, to), raw_dtype=to)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _block(kind: str) -> int:
    return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    adders = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    adders |= {str: writer.add_string, list: writer.add_array}
    adders[type(value)](key, value)


def letters(
    writer: gguf.GGUFWriter,
    *,
    pre: str = "smollm",
    size: int = 320,
    end: str = "control",
    named: Mapping[int, str] | None = None,
) -> None:
    """Byte-level BPE: 256 bytes, four merges, two special tokens, and spare ones.

    `end` is the kind that the file says the token of a turn's end has; `named` spare tokens are
    special ones with these texts.
    """
    named = named or {}
    alphabet = list(_alphabet())
    merges = ["h e", "l l", "he ll", "\u0120 w"]
    tokens = [*alphabet, *(m.replace(" ", "") for m in merges), "<|im_start|>", "<|im_end|>"]
    kinds = [KINDS["normal"]] * (len(tokens) - 2) + [KINDS["control"], KINDS[end]]
    spare = range(len(tokens), size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([*tokens, *(named.get(i, f"[PAD{i}]") for i in spare)])
    writer.add_token_types([*kinds, *(KINDS["control"] if i in named else 5 for i in spare)])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(len(tokens) - 2)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_chat_template(TEMPLATE)


def _alphabet() -> str:
    """GPT-2's characters for the 256 bytes, in the order of the bytes."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return "".join(chr(b if b in shown else next(hidden)) for b in range(256))


def of_folder(folder: Path, file: Path, architecture: str, **given: Any) -> Path:
    """A saved folder of a Llama-like family as GGUF.

    Rows of q and k of Llama are put in pairs, and Gemma's norms get one added, as llama.cpp wants.
    """
    config = json.loads((folder / "config.json").read_text())
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    kind = next(k for k, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, config["num_hidden_layers"])
    tensors = {}
    for name, array in load_file(folder / "model.safetensors").items():
        if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
            array = _paired(array, head)
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            array = array + np.float32(1)
        base, _, suffix = name.rpartition(".")
        tensors[f"{names.get_name(base)}.{suffix}"] = array
    rope = config.get("rope_parameters") or {}
    metadata = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "attention.key_length": head,
        "attention.value_length": head,
        "rope.freq_base": float(rope.get("full_attention", rope).get("rope_theta", 10000.0)),
    }
    extra = given.pop("metadata", {})
    return write(file, architecture, tensors, {**metadata, **extra}, **given)


def _paired(rows: np.ndarray, head: int) -> np.ndarray:
    halves = rows.reshape(-1, 2, head // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def llama(
    file: Path,
    *,
    kind: str = "F32",
    kinds: Mapping[str, str] | None = None,
    size: int = 64,
    inner: int = 96,
    layers: int = 2,
    tensors: Mapping[str, np.ndarray] | None = None,
    **metadata: Any,
) -> Path:
    """A random Llama of `size` dimensions, 4 heads and tied embeddings, with more `tensors`."""
    rng = np.random.default_rng(0)
    shapes = {"token_embd": (320, size), "output_norm": (size,)}
    for layer in range(layers):
        matrices = {
            "attn_q": (size, size),
            "attn_k": (size // 2, size),
            "attn_v": (size // 2, size),
            "attn_output": (size, size),
            "ffn_gate": (inner, size),
            "ffn_up": (inner, size),
            "ffn_down": (size, inner),
            "attn_norm": (size,),
            "ffn_norm": (size,),
        }
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in matrices.items()}
    arrays = {
        f"{name}.weight": rng.normal(scale=0.1, size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    sizes = {
        "block_count": layers,
        "context_length": 256,
        "embedding_length": size,
        "feed_forward_length": inner,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.layer_norm_rms_epsilon": 1e-5,
    }
    return write(
        file, "llama", {**arrays, **(tensors or {})}, {**sizes, **metadata}, kind=kind, kinds=kinds
    )


def experts(file: Path, kinds: Mapping[str, str]) -> Path:
    """A random Qwen3 MoE of two layers with four experts, of which a row has two."""
    rng = np.random.default_rng(0)
    size, inner, heads, head = 256, 512, 4, 64
    shapes = {"token_embd": (320, size), "output_norm": (size,), "output": (320, size)}
    for layer in range(2):
        matrices = {
            "attn_q": (heads * head, size),
            "attn_k": (heads * head, size),
            "attn_v": (heads * head, size),
            "attn_output": (size, heads * head),
            "ffn_gate_inp": (4, size),
            "ffn_gate_exps": (4, inner, size),
            "ffn_up_exps": (4, inner, size),
            "ffn_down_exps": (4, size, inner),
            "attn_norm": (size,),
            "attn_q_norm": (head,),
            "attn_k_norm": (head,),
            "ffn_norm": (size,),
        }
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in matrices.items()}
    arrays = {  # norms are around 1
        f"{name}.weight": rng.normal(len(shape) == 1, 0.1, shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    sizes = {
        "block_count": 2,
        "context_length": 128,
        "embedding_length": size,
        "feed_forward_length": inner,
        "expert_feed_forward_length": inner,
        "expert_count": 4,
        "expert_used_count": 2,
        "attention.head_count": heads,
        "attention.head_count_kv": heads,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
    }
    return write(file, "qwen3moe", arrays, sizes, kinds=kinds)


def halves(file: Path, first: Path, second: Path) -> None:
    """Split a float32 Llama: the metadata and some tensors, and the other tensors."""
    read = gguf.GGUFReader(file)
    tensors = [(t.name, np.array(t.data)) for t in read.tensors]
    sizes = {
        name.removeprefix("llama."): field.contents()
        for name, field in read.fields.items()
        if name.startswith("llama.")
    }
    middle = len(tensors) // 2
    split = {"split.count": 2, "split.tensors.count": len(tensors)}
    write(first, "llama", dict(tensors[:middle]), {**sizes, **split, "split.no": 0})
    write(second, "llama", dict(tensors[middle:]), {**split, "split.no": 1})


def granite_hybrid(folder: Path, file: Path) -> Path:
    """A saved folder of Granite 4 as GGUF, with llama.cpp's changes of Mamba-2's tensors."""
    config = json.loads((folder / "config.json").read_text())
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    head, inner = config["hidden_size"] // heads, config["mamba_expand"] * config["hidden_size"]
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GRANITE_HYBRID, layers)
    experts, tensors = config["num_local_experts"], {}
    shared = {"gate": "ffn_gate_shexp", "up": "ffn_up_shexp", "down": "ffn_down_shexp"}
    dense = {"gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
    own = shared if experts else dense
    for name, array in load_file(folder / "model.safetensors").items():
        layer = f"blk.{name.split('.')[2]}." if ".layers." in name else ""
        if name.endswith("input_linear.weight"):
            kinds = own if "shared_mlp" in name else {k: f"ffn_{k}_exps" for k in dense}
            gate, up = np.split(array, 2, axis=-2)
            tensors |= {f"{layer}{kinds['gate']}.weight": gate, f"{layer}{kinds['up']}.weight": up}
            continue
        if name.endswith("shared_mlp.output_linear.weight"):
            tensors[f"{layer}{own['down']}.weight"] = array
            continue
        if ".q_proj." in name or ".k_proj." in name:
            array = _paired(array, head)
        array = -np.exp(array) if name.endswith("A_log") else array
        if name.endswith("conv1d.weight"):
            array = array.squeeze(1)
        if name.endswith(("A_log", ".D")):
            array = array.reshape(-1, 1)
        if name.endswith("mamba.norm.weight"):
            array = array.reshape(config["mamba_n_groups"], -1)
        name = name.replace("dt_bias", "dt_proj.bias")
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert stored is not None, name
        tensors[stored] = array
    kv = config["num_key_value_heads"]
    attends = [kind in ("attention", "full_attention") for kind in config["layer_types"]]
    sizes = {
        "block_count": layers,
        "context_length": 2**20,
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "expert_count": experts,
        "expert_used_count": config["num_experts_per_tok"],
        "expert_shared_feed_forward_length": config["shared_intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": [kv if a else 0 for a in attends],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "attention.scale": float(config["attention_multiplier"]),
        "embedding_scale": float(config["embedding_multiplier"]),
        "residual_scale": float(config["residual_multiplier"]),
        "logit_scale": float(config["logits_scaling"]),
        "rope.dimension_count": head,
        "rope.freq_base": 10000.0,
        "rope.scaling.finetuned": config.get("position_embedding_type") == "rope",
        "ssm.conv_kernel": config["mamba_d_conv"],
        "ssm.state_size": config["mamba_d_state"],
        "ssm.group_count": config["mamba_n_groups"],
        "ssm.inner_size": inner,
        "ssm.time_step_rank": config["mamba_n_heads"],
    }
    return write(file, "granitehybrid", tensors, sizes)


def with_projector(
    folder: Path,
    file: Path,
    projector: Path,
    *,
    token: int,
    kind: str = "F32",
    text_kind: str = "F32",
    **metadata: Any,
) -> Path:
    """A saved SmolVLM as GGUF: the text model, and the projector's file, whose type is `kind`.

    `token` is the id of the placeholder. A field of `metadata` that is None is left out.
    """
    config = json.loads((folder / "config.json").read_text())
    stored = load_file(folder / "model.safetensors")
    seeing = {n: a for n, a in stored.items() if ".vision_model." in n or ".connector." in n}
    text = {n.replace(".text_model", ""): a for n, a in stored.items() if n not in seeing}
    alone = file.with_suffix("")
    alone.mkdir(exist_ok=True)
    save_file(text, alone / "model.safetensors")
    (alone / "config.json").write_text(json.dumps(config["text_config"]))
    vocabulary = partial(letters, named={token: "<image>"})
    of_folder(alone, file, "llama", kind=text_kind, vocabulary=vocabulary)
    vision = config["vision_config"]
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, vision["num_hidden_layers"])
    tensors = {names.get_name(n, (".weight", ".bias")): a for n, a in seeing.items()}
    fields = {
        "projector_type": "idefics3",
        "has_vision_encoder": True,
        "use_gelu": True,
        "vision.projection_dim": config["text_config"]["hidden_size"],
        "vision.image_size": vision["image_size"],
        "vision.patch_size": vision["patch_size"],
        "vision.embedding_length": vision["hidden_size"],
        "vision.feed_forward_length": vision["intermediate_size"],
        "vision.block_count": vision["num_hidden_layers"],
        "vision.attention.head_count": vision["num_attention_heads"],
        "vision.attention.layer_norm_epsilon": vision["layer_norm_eps"],
        "vision.image_mean": [0.5, 0.5, 0.5],
        "vision.image_std": [0.5, 0.5, 0.5],
        "vision.projector.scale_factor": config["scale_factor"],
        "vision.preproc_image_size": 2 * vision["image_size"],
        **metadata,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return write(projector, "clip", tensors, given, kind=kind, vocabulary=lambda _: None)


def qwen3_vl(folder: Path, file: Path, projector: Path, *, token: int) -> Path:
    """A saved Qwen3-VL as GGUF: the text model, and the projector's file.

    `token` is the id of the placeholder.
    """
    config = json.loads((folder / "config.json").read_text())
    stored = load_file(folder / "model.safetensors")
    seeing = {n.removeprefix("model.visual."): a for n, a in stored.items() if ".visual." in n}
    text = {n.replace(".language_model", ""): a for n, a in stored.items() if ".visual." not in n}
    alone, own = file.with_suffix(""), config["text_config"]
    alone.mkdir(exist_ok=True)
    save_file(text, alone / "model.safetensors")
    (alone / "config.json").write_text(json.dumps(own))
    vision = config["vision_config"]
    deep = vision["deepstack_visual_indexes"]
    sections = [*own["rope_parameters"]["mrope_section"], 0]
    more = {"rope.dimension_sections": sections, "n_deepstack_layers": len(deep)}
    vocabulary = partial(letters, named={token: "<|image_pad|>"})
    of_folder(alone, file, "qwen3vl", metadata=more, vocabulary=vocabulary)
    tensors = {}
    for name, array in seeing.items():
        if array.ndim == 5:
            frames = np.ascontiguousarray(array.transpose(2, 0, 1, 3, 4))
            tensors |= {"v.patch_embd.weight": frames[0], "v.patch_embd.weight.1": frames[1]}
        else:
            tensors[_of_qwen3_vl(name, deep)] = array
    fields = {
        "projector_type": "qwen3vl_merger",
        "has_vision_encoder": True,
        "use_gelu": True,
        "vision.projection_dim": own["hidden_size"],
        "vision.image_size": round(vision["num_position_embeddings"] ** 0.5) * vision["patch_size"],
        "vision.patch_size": vision["patch_size"],
        "vision.embedding_length": vision["hidden_size"],
        "vision.feed_forward_length": vision["intermediate_size"],
        "vision.block_count": vision["depth"],
        "vision.attention.head_count": vision["num_heads"],
        "vision.attention.layer_norm_epsilon": own["rms_norm_eps"],
        "vision.spatial_merge_size": vision["spatial_merge_size"],
        "vision.is_deepstack_layers": [i in deep for i in range(vision["depth"])],
        "vision.image_mean": [0.5, 0.5, 0.5],
        "vision.image_std": [0.5, 0.5, 0.5],
    }
    return write(projector, "clip", tensors, fields, vocabulary=lambda _: None)


def _of_qwen3_vl(name: str, deep: list[int]) -> str:
    """llama.cpp's name of a tensor of Qwen3-VL's tower."""
    outer = {"patch_embed.proj": "v.patch_embd", "pos_embed": "v.position_embd"}
    outer |= {"merger.norm": "v.post_ln", "merger.linear_fc1": "mm.0", "merger.linear_fc2": "mm.2"}
    layer = {"attn.qkv": "attn_qkv", "attn.proj": "attn_out", "norm1": "ln1", "norm2": "ln2"}
    layer |= {"mlp.linear_fc1": "ffn_up", "mlp.linear_fc2": "ffn_down"}
    base, _, kind = name.rpartition(".")
    if base in outer:
        return f"{outer[base]}.{kind}"
    first, number, part = base.split(".", 2)
    if first == "blocks":
        return f"v.blk.{number}.{layer[part]}.{kind}"
    return f"v.deepstack.{deep[int(number)]}.{part.removeprefix('linear_')}.{kind}"
