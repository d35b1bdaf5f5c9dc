"""Read `config.json` into a model's frozen dataclass. An unknown field is an error, not ignored.

A configuration class is a frozen dataclass whose fields have Hugging Face's names:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class LlamaConfig:
        hidden_size: int
        num_key_value_heads: int | None = None     # null or absent: the default
        rope: RopeConfig                           # from rope_theta, rope_scaling, rope_parameters
        ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("silu",)}

        def problems(self) -> Iterator[str]: ...   # contradictions between fields

Every number has a range: `hidden_size: Annotated[int, Range(1, 2**20)]`, or one of the names below.
`problems` is optional. `DEFAULTS` (optional) has values of fields that are absent, not null.
`SPELLED` (optional) maps our field names to those of config.json where they differ;
`ALIASES` (optional) maps further names of config.json to our field names. `prepared` (optional, a
static method from dict to dict) makes one spelling of several. A
`RopeConfig` of another name than `rope` is read from NAME_parameters. A field with the metadata
`NOT_READ` has its default, whatever config.json has. `ACCEPTED` (optional) names
fields that are not read, and the values that they may have; each element of a list must be one of
them. `IGNORED` (optional, a tuple of names) names fields without effect on the computation.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from wherry.errors import ModelError, WherryError, listing, shown

from .layers.rope import ROPE_FIELDS, RopeConfig, read_rope


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Config = TypeVar("Config", bound=_Dataclass)


@dataclass(frozen=True, slots=True)
class Range:
    """Allowed numbers of a field, `least` to `most`, for Annotated. NaN is in no range."""

    least: float
    most: float

    def __contains__(self, value: float) -> bool:
        return bool(self.least <= value <= self.most)


# Upper limits are larger than in any existing model, and small enough that nothing overflows or
# exhausts memory.
Size = Annotated[int, Range(1, 2**20)]  # a dimension: hidden, intermediate, a head's
Count = Annotated[int, Range(1, 2**12)]  # number of layers or of heads
CountOrZero = Annotated[int, Range(0, 2**12)]
VocabSize = Annotated[int, Range(1, 2**24)]
Positions = Annotated[int, Range(1, 2**30)]  # number of tokens
Epsilon = Annotated[float, Range(1e-12, 0.1)]
Factor = Annotated[float, Range(1e-6, 1e6)]
Cap = Annotated[float, Range(1e-3, 1e6)]  # of logits or scores: cap * tanh(x / cap)

# Metadata of fields that are no fields of config.json: `field(default=..., metadata=NOT_READ)`.
NOT_READ = {"config.json": False}

# Fields that do not change what a decoder computes, by their purpose.
NO_EFFECT = frozenset(
    # Fields about the program that wrote the file, and about loading.
    "_name_or_path name architectures model_type auto_map transformers_version torch_dtype dtype "
    "_attn_implementation attn_implementation _attn_implementation_autoset torchscript "
    "_commit_hash use_flash_attn use_bfloat16 tie_encoder_decoder is_llama_config "
    "transformers.js_config unsloth_fixed unsloth_version "
    # Fields about special tokens and generation: the tokenizer and generation_config.json have
    # them.
    "bos_token_id eos_token_id pad_token_id unk_token_id sep_token_id decoder_start_token_id "
    "bos_token eos_token pad_token do_sample temperature top_k top_p typical_p num_beams "
    "num_beam_groups num_return_sequences diversity_penalty repetition_penalty length_penalty "
    "no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids max_length min_length "
    "max_new_tokens early_stopping forced_bos_token_id forced_eos_token_id prefix "
    "begin_suppress_tokens suppress_tokens exponential_decay_length_penalty "
    "remove_invalid_values task_specific_params finetuning_task tokenizer_class "
    # Fields about training and about outputs that Wherry does not return.
    "initializer_range use_cache attention_dropout hidden_dropout resid_pdrop embd_pdrop "
    "output_attentions output_hidden_states output_scores output_router_logits return_dict "
    "return_dict_in_generate chunk_size_feed_forward problem_type id2label label2id "
    "router_aux_loss_coef gradient_checkpointing keys_to_ignore_at_inference "
    # Fields about the checkpoint's encoding, which its reader checks (compiler/checkpoint), and
    # about a head that drafts tokens (compiler/draft_head.py).
    "quantization_config compression_config quantization wherry_draft_head".split()
)
# Fields that have the same meaning in every decoder -> values that are accepted.
_ALWAYS: Mapping[str, tuple[Any, ...]] = {
    "pretraining_tp": (1,),
    "rope_interleaved": (False,),
    "is_encoder_decoder": (False,),
    "is_decoder": (False, True),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (),
    "pruned_heads": ({},),
}


@contextmanager
def about_config(model_type: object) -> Iterator[None]:
    """Turn what a configuration makes the code of its family raise into an error about config.json.

    Contradictions between fields that no check knows end here.

    Raises:
        ModelError: any error but ours.
    """
    try:
        yield
    except (WherryError, MemoryError):
        raise
    except Exception as e:
        raise ModelError(
            f"config.json (model_type {shown(model_type)}): its values do not fit each other, or "
            f"not this family: {type(e).__name__}: {str(e).strip()[:500]}"
        ) from e


def read_config(cls: type[Config], hf: Mapping[str, Any]) -> Config:
    """Create a `cls` from the content of `config.json`.

    A field that is null counts as absent: transformers writes null for what is switched off.

    Raises:
        ModelError: listing every unknown, missing and unsupported field with its value.
    """
    with about_config(hf.get("model_type")):
        return _read_config(cls, hf)


def _read_config(cls: type[Config], hf: Mapping[str, Any]) -> Config:
    problems: list[str] = []
    given = {name: _floats(value) for name, value in hf.items() if value is not None}
    defaults: Mapping[str, Any] = getattr(cls, "DEFAULTS", {})
    given |= {name: value for name, value in defaults.items() if name not in hf}
    given = _by_our_names(given, getattr(cls, "ALIASES", {}), problems)
    given = getattr(cls, "prepared", dict)(given)
    spelled: Mapping[str, str] = getattr(cls, "SPELLED", {})
    every: tuple[Field[Any], ...] = fields(cls)
    declared = [field for field in every if field.metadata.get("config.json", True)]
    longest = spelled.get("max_position_embeddings", "max_position_embeddings")
    hints = get_type_hints(cls, include_extras=True)
    values: dict[str, Any] = {}
    rope_names: tuple[str, ...] = ()
    for field in declared:
        hint, name = hints[field.name], spelled.get(field.name, field.name)
        if hint is RopeConfig and field.name == "rope":
            length = {"max_position_embeddings": given.get(longest)}
            values[field.name] = read_rope(given | length, problems)
            rope_names += (*ROPE_FIELDS, "original_max_position_embeddings")
        elif hint is RopeConfig:
            own = f"{field.name}_parameters"
            only = {"rope_parameters": given.get(own)}
            length = {"max_position_embeddings": given.get(longest)}
            values[field.name] = read_rope(only | length, problems)
            rope_names += (own,)
        elif name in given:
            value = given[name]
            if _fits(hint, value):
                values[field.name] = tuple(value) if isinstance(value, list) else value
            else:
                problems.append(f"{name}: found {shown(value)}, expected {_spelled(hint)}")
        elif field.default is MISSING and field.default_factory is MISSING:
            problems.append(f"{name}: missing")
    accepted = {**_ALWAYS, **getattr(cls, "ACCEPTED", {})}
    known = {spelled.get(f.name, f.name) for f in declared} | set(rope_names) | NO_EFFECT
    known |= set(getattr(cls, "IGNORED", ()))
    problems += _not_accepted(given, accepted, known)
    config = None if problems else cls(**values)
    problems += _contradictions(config)
    if config is None or problems:
        raise ModelError(
            f"config.json (model_type {shown(hf.get('model_type'))}) does not describe a model "
            f"that {cls.__name__} can:\n{listing(problems)}\n"
            "A field that is not known may change the result, so none is passed over."
        )
    return config


def _contradictions(config: Any) -> list[str]:
    """Return contradictions between the fields of a configuration; None has none."""
    check: Any = getattr(config, "problems", None)
    problems: list[str] = []
    try:
        if check is not None:
            for problem in check():
                problems.append(problem)  # those before an error are kept
    except Exception:
        if not problems:
            raise
        # A later check failed over what an earlier one has found.
    return problems or list(_experts(config))


# Fields of families with experts, as config.json and as our configurations call them.
_OF_EXPERTS = (
    "num_experts_per_tok moe_k moe_topk top_k_experts num_experts num_local_experts "
    "n_routed_experts moe_num_experts n_group num_expert_group topk_group topk_method"
).split()


def _experts(config: Any) -> Iterator[str]:
    """Yield what is wrong with the experts of a layer, with the fields about them."""
    experts_of: Any = getattr(config, "experts_of", None)
    for layer in range(config.num_hidden_layers if experts_of else 0):
        try:
            experts_of(layer)
        except ValueError as e:
            given = {n: v for n in _OF_EXPERTS if (v := getattr(config, n, None)) is not None}
            yield f"{', '.join(f'{n}: {shown(v)}' for n, v in given.items())}: {e}"
            return


def _floats(value: Any) -> Any:
    """Return a value in which infinities are floats: transformers writes them as objects."""
    if isinstance(value, list):
        return [_floats(v) for v in value]
    infinite = isinstance(value, Mapping) and list(value.items()) == [("__float__", "Infinity")]
    return math.inf if infinite else value


def _by_our_names(
    given: dict[str, Any], spellings: Mapping[str, str], problems: list[str]
) -> dict[str, Any]:
    """Rename fields of config.json to Wherry's names.

    If a field is present under two names, both must have one value; else `problems` gets an error.
    """
    renamed = {name: value for name, value in given.items() if name not in spellings}
    for other, own in spellings.items():
        if other in given and renamed.setdefault(own, given[other]) != given[other]:
            problems.append(
                f"{other}: found {shown(given[other])}, but {own} is {shown(renamed[own])}"
            )
    return renamed


def _not_accepted(
    given: Mapping[str, Any], accepted: Mapping[str, tuple[Any, ...]], known: set[str]
) -> Iterator[str]:
    for name in sorted(given):
        value = given[name]
        if name in known:
            continue
        if name not in accepted:
            yield f"{name}: {shown(value)}, an unknown field"
            continue
        # pairs with the type, because 0 is not False
        choices = [(type(a), a) for a in accepted[name]]
        if any(
            (type(v), v) not in choices for v in (value if isinstance(value, list) else [value])
        ):
            supported = " or ".join(repr(a) for a in accepted[name]) or "null"
            yield f"{name}: found {shown(value)}, supported is {supported}"


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a JSON value has an annotated type; types that JSON lacks are not checked."""
    origin = get_origin(hint)
    if origin is Annotated:
        kind, *ranges = get_args(hint)
        return _fits(kind, value) and all(value in r for r in ranges if isinstance(r, Range))
    if origin is Union or origin is types.UnionType:
        return any(_fits(h, value) for h in get_args(hint))
    if origin is tuple:
        arguments = [a for a in get_args(hint) if a is not Ellipsis]
        return isinstance(value, list) and all(_fits(arguments[0], v) for v in value)
    if origin is not None:  # other generic types, such as Literal
        return value in get_args(hint) if origin is Literal else True
    if hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint in (int, str, bool):
        return type(value) is hint
    return True


def _spelled(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        kind, *ranges = get_args(hint)
        said = "".join(f" from {r.least} to {r.most}" for r in ranges if isinstance(r, Range))
        return _spelled(kind) + said
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join("null" if h is type(None) else _spelled(h) for h in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(repr(value) for value in get_args(hint))
    return hint.__name__ if isinstance(hint, type) else str(hint)
