"""WebLLM's interface over a compiled library: VM functions with the names that WebLLM calls.

    embed(tokens i32 [n], params) -> i32 [n, 1]: the tokens themselves, which only `prefill` reads
    prefill(embedded [1, n, 1], cache, params) -> (logits f32 [1, vocab], cache); decode: the same
    create_tir_paged_kv_cache(sequences, tokens, rows, page, window) -> cache
    softmax_with_temperature, argsort_probs, sample_with_top_p, apply_logit_bias_inplace,
    apply_penalty_inplace, apply_bitmask_inplace: of @mlc-ai/web-llm 0.2.86, src/llm_chat.ts

WebLLM passes the result of argsort_probs to sample_with_top_p without reading it. Sampling needs no
order (targets/kernels/gpu/web_llm.py), so argsort_probs returns its argument, twice. `prefill`
calls `forward` with the arrays of the cache (web/core/web_llm/cache.cc).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tvm import IRModule, relax, tirx
from tvm.ir import StringImm

from wherry.errors import UsageError
from wherry.targets.kernels.gpu import web_llm as kernels
from wherry.targets.kernels.gpu.limits import GpuLimits

CONFIG = "mlc-chat-config.json"
_CACHE, _BATCH, _STATE = (f"wherry.web_llm.{name}" for name in ("cache", "batch", "state"))
_ANY = relax.ObjectType()


def entries(of: tuple[str, ...]) -> tuple[str, ...]:
    """Return the library's entries for WebLLM, whose own `embed` has another meaning.

    Raises:
        UsageError: the model generates no text, drafts tokens, or reads a source.
    """
    if "draft" in of:
        raise UsageError("WebLLM's engine drafts no tokens: leave out --mtp and --draft-head.")
    if "encode" in of:
        raise UsageError("WebLLM's cache has no sources: it runs no encoder-decoder.")
    if "forward" not in of:
        raise UsageError(
            f"WebLLM runs models that write text; this one has {', '.join(of)} alone. "
            "Type: --target webgpu"
        )
    return ("forward",)


def add_interface(
    mod: IRModule, metadata: dict[str, Any], limits: GpuLimits, *, vocab_size: int
) -> IRModule:
    """Add WebLLM's functions to the module; `metadata` gets the fields that WebLLM reads.

    Args:
        mod: the module before the link phase, with `forward`.
        metadata: metadata of the library, changed in place.
        limits: launch limits of the GPU kernels.
        vocab_size: number of logits.

    Raises:
        UsageError: the model has a recurrent state.
    """
    if any(spec["kind"] == "recurrent" for spec in metadata["state"]):
        raise UsageError(
            f"{metadata['name']} has recurrent layers, and WebLLM's cache has no state for them. "
            "Type: --target webgpu"
        )
    for param in metadata["params"]:
        assert "pack" not in param and len(param["from"]) == 1, f"{param} is made at the load"
        (param["name"],) = param["from"]  # WebLLM looks this parameter name up in tensor-cache.json
    metadata |= {
        "kv_state_kind": "kv_cache",
        "prefill_chunk_size": metadata["prefill_chunk"],
        "context_window_size": metadata["context"],
        "sliding_window_size": -1,
        "attention_sink_size": -1,
    }
    forward = mod["forward"]
    arrays, states = _arguments(metadata)
    params = relax.TupleType([p.ty for p in forward.params[arrays + states :]])
    builder = relax.BlockBuilder(mod)
    _add_embed(builder, params)
    for name in ("prefill", "decode"):
        _add_step(builder, name, forward, params, arrays, states)
    _add_cache(builder, metadata)
    _add_sampling(builder, limits, vocab_size)
    return builder.get()


def _arguments(metadata: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many batch arrays and how many KV cache tensors `forward` takes."""
    arrays = sum(2 if name.startswith("pages.") else 1 for name in metadata["inputs"])
    return arrays, sum(int(spec["layers"]) for spec in metadata["state"])


def _add_embed(builder: relax.BlockBuilder, params: relax.TupleType) -> None:
    n = tirx.Var("n", "int64")
    tokens = relax.Var("tokens", relax.TensorType([n], "int32"))
    with builder.function("embed", [tokens, relax.Var("params", params)]):
        shaped = builder.emit(relax.op.reshape(tokens, relax.ShapeExpr([n, 1])))
        builder.emit_func_output(shaped)


def _add_step(
    builder: relax.BlockBuilder,
    name: str,
    forward: relax.Function,
    params: relax.TupleType,
    arrays: int,
    states: int,
) -> None:
    """Add a function that calls `forward` with tokens, the cache's arrays, and parameters."""
    n = tirx.Var("n", "int64")
    embedded = relax.Var("embedded", relax.TensorType([1, n, 1], "int32"))
    cache, given = relax.Var("cache", _ANY), relax.Var("params", params)
    own = {forward.params[0].ty.shape[0]: n}
    with builder.function(name, [embedded, cache, given], attrs={"relax.force_pure": True}):
        tokens = builder.emit(relax.op.reshape(embedded, relax.ShapeExpr([n])))
        arguments: list[Any] = [tokens]
        for function, first, count in ((_BATCH, 1, arrays - 1), (_STATE, arrays, states)):
            types = [
                relax.TensorType(dtype=p.ty.dtype, ndim=p.ty.ndim)
                for p in forward.params[first : first + count]
            ]
            results = builder.emit(
                relax.Call(relax.ExternFunc(function), [cache], ty_args=[relax.TupleType(types)])
            )
            for i, param in enumerate(forward.params[first : first + count]):
                item = builder.emit(relax.TupleGetItem(results, i))
                arguments.append(builder.match_cast(item, _renamed(param.ty, own, n)))
        arguments += [builder.emit(relax.TupleGetItem(given, i)) for i in range(len(params.fields))]
        logits = builder.emit(relax.Call(_var(builder, "forward"), arguments))
        builder.emit_func_output(relax.Tuple([logits, cache]))


def _renamed(kind: relax.TensorType, sizes: dict[Any, Any], n: Any) -> relax.TensorType:
    """Return the struct info with the symbolic sizes of the new function; `n` is its row count."""

    def own(size: Any) -> Any:
        if not isinstance(size, tirx.Var):
            return size
        return sizes.setdefault(size, tirx.Var(size.name, "int64"))

    return relax.TensorType([own(size) for size in kind.shape], kind.dtype)


def _var(builder: relax.BlockBuilder, name: str) -> Any:
    return builder.get().get_global_var(name)


def _add_cache(builder: relax.BlockBuilder, metadata: Mapping[str, Any]) -> None:
    names = ("sequences", "tokens", "rows", "page", "window")
    sizes = [relax.Var(name, relax.ShapeType(ndim=1)) for name in names]
    cache_spec = {name: metadata[name] for name in ("page_size", "inputs", "state")}
    with builder.function("create_tir_paged_kv_cache", sizes, attrs={"relax.force_pure": True}):
        call = relax.Call(
            relax.ExternFunc(_CACHE), [*sizes, StringImm(json.dumps(cache_spec))], ty_args=[_ANY]
        )
        builder.emit_func_output(builder.emit(call))


def _add_sampling(builder: relax.BlockBuilder, limits: GpuLimits, vocab: int) -> None:
    m, k, b = (tirx.Var(name, "int64") for name in "mkb")

    def tensor(name: str, shape: Sequence[Any], dtype: str = "float32") -> relax.Var:
        return relax.Var(name, relax.TensorType(list(shape), dtype))

    probabilities = relax.TensorType([m, 1, vocab], "float32")
    _new(
        builder,
        "softmax_with_temperature",
        kernels.softmax(vocab, limits),
        [tensor("logits", (m, 1, vocab)), tensor("temperatures", (m,))],
        probabilities,
    )
    _add_draw(builder, kernels.sample_top_p(vocab, limits), vocab)
    pairs = [tensor("rows", (k,), "int32"), tensor("ids", (k,), "int32")]
    logits = tensor("logits", (m, vocab))
    _in_place(
        builder,
        "apply_logit_bias_inplace",
        kernels.bias(vocab, limits),
        [logits, *pairs, tensor("values", (k,))],
    )
    _in_place(
        builder,
        "apply_penalty_inplace",
        kernels.penalty(vocab, limits),
        [
            tensor("logits", (b, vocab)),
            tensor("sequences", (m,), "int32"),
            *pairs,
            tensor("counts", (k,), "int32"),
            tensor("penalties", (m, 3)),
        ],
    )
    _in_place(
        builder,
        "apply_bitmask_inplace",
        kernels.bitmask(vocab, limits),
        [
            tensor("logits", (b, vocab)),
            tensor("rows", (m,), "int32"),
            tensor("mask", (b, -(-vocab // 32)), "int32"),
        ],
    )


def _add_draw(builder: relax.BlockBuilder, func: Any, vocab: int) -> None:
    """Add `argsort_probs`, which does nothing, and `sample_with_top_p`."""
    b, m = (tirx.Var(name, "int64") for name in "bm")
    probabilities = relax.Var("probabilities", relax.TensorType([b, vocab], "float32"))
    with builder.function("argsort_probs", [probabilities]):
        builder.emit_func_output(relax.Tuple([probabilities, probabilities]))
    inputs = [
        relax.Var(name, relax.TensorType(shape, dtype))
        for name, shape, dtype in (
            ("sorted", [b, vocab], "float32"),
            ("ids", [b, vocab], "float32"),
            ("uniform", [m], "float32"),
            ("rows", [m], "int32"),
            ("top_p", [b], "float32"),
        )
    ]
    taken = [inputs[0], *inputs[2:]]
    with builder.function("sample_with_top_p", inputs):
        with builder.dataflow():
            var = builder.add_func(func, "sample_with_top_p_kernel")
            tokens = relax.call_tir(var, taken, out_ty=relax.TensorType([m], "int32"))
            out = builder.emit_output(tokens)
        builder.emit_func_output(out)


def _new(
    builder: relax.BlockBuilder, name: str, func: Any, inputs: list[Any], out: relax.TensorType
) -> None:
    """Add a Relax function that calls one kernel and returns a new tensor."""
    with builder.function(name, inputs):
        with builder.dataflow():
            var = builder.add_func(func, f"{name}_kernel")
            output = builder.emit_output(relax.call_tir(var, inputs, out_ty=out))
        builder.emit_func_output(output)


def _in_place(builder: relax.BlockBuilder, name: str, func: Any, inputs: list[Any]) -> None:
    """Add a Relax function that calls one kernel in place and returns its first argument."""
    with builder.function(name, inputs):
        with builder.dataflow():
            var = builder.add_func(func, f"{name}_kernel")
            changed = relax.op.call_tir_inplace(var, inputs, [0], inputs[0].ty)
            output = builder.emit_output(changed)
        builder.emit_func_output(output)


def chat_config(
    described_as: Mapping[str, Any],
    deployment: Mapping[str, Any],
    *,
    quantization: str,
    vocab_size: int,
    files: Sequence[str],
    tokens: Mapping[str, Any],
    chat: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the content of mlc-chat-config.json.

    Args:
        described_as: content of the model's config.json.
        deployment: limits of the library.
        quantization: name of the scheme.
        vocab_size: number of logits.
        files: names of the folder's files.
        tokens: "bos_token_id" and "eos_token_id", if the model has them.
        chat: result of `web_llm_chat.conversation`; None: the model has no chat template.
    """
    sizes = {
        "context_window_size": deployment["context"],
        "prefill_chunk_size": deployment["prefill_chunk"],
        "sliding_window_size": -1,
        "attention_sink_size": -1,
        "tensor_parallel_shards": 1,
    }
    ends = tokens.get("eos_token_id")
    stops = ends if isinstance(ends, list) else [] if ends is None else [ends]
    roles = ("user", "assistant", "tool")
    return {
        "version": "0.1.0",
        "model_type": described_as.get("model_type", ""),
        "quantization": quantization,
        "model_config": {**described_as, **sizes},
        "vocab_size": vocab_size,
        **sizes,
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "bos_token_id": tokens.get("bos_token_id", 1),
        "eos_token_id": stops,
        "tokenizer_files": [name for name in files if "token" in name],
        "conv_template": {
            "name": "wherry",
            **(chat or {"system_template": "", "system_message": "", "seps": [""]}),
            "roles": dict.fromkeys(roles, ""),
            "role_templates": {role: f"{{{role}_message}}" for role in roles},
            "messages": [],
            "role_content_sep": "",
            "role_empty_sep": "",
            "stop_str": [],
            "stop_token_ids": stops,
            "function_string": "",
            "use_function_calling": False,
        },
    }
