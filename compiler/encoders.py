"""What an encoder computes of its rows: a vector, or the logits of classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wherry.artifact.head import ClassHead, EmbeddingHead, Head, ScoreHead
from wherry.errors import ModelError, listing, shown
from wherry.hub.folder import optional_json
from wherry.models.output import DenseShape, Output

from .checkpoint.folder import TOKENIZER, ModelFolder

_CLASSES = "ForSequenceClassification"  # end of the name of transformers' classes with a class head
# Where sentence-transformers' cross-encoders name the activation of a single logit.
_ACTIVATIONS = {"Identity": "identity", "Sigmoid": "sigmoid"}
_MOST_LABELS = 2**16


def default_head() -> EmbeddingHead:
    """Return the head of an encoder whose folder names none, as sentence-transformers has it."""
    return EmbeddingHead(pooling="mean", normalize=False)


def class_head(folder: ModelFolder) -> ClassHead | None:
    """Return the head that config.json describes; None: the model has none of classes.

    Raises:
        ModelError: labels or activation are not what transformers writes.
    """
    names = folder.raw.get("architectures") or []
    if not any(str(name).endswith(_CLASSES) for name in names):
        if folder.sentence.is_cross_encoder:
            raise ModelError(
                f"{folder.path} is a cross-encoder of sentence-transformers, and config.json has "
                f"architectures {shown(names)}; supported is a class ...{_CLASSES}."
            )
        return None
    labels = _labels(folder.path, folder.raw)
    return ClassHead(
        labels=labels,
        activation=_activation(folder, len(labels)),
        separator=_separator(folder),
        max_tokens=folder.sentence.longest_text,
    )


def _labels(folder: Path, raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the classes, in the order of their logits."""
    named = raw.get("id2label")
    if named is None:
        count = raw.get("num_labels", 2)  # transformers' default
        if type(count) is int and 0 < count <= _MOST_LABELS:
            return tuple(f"LABEL_{i}" for i in range(count))
        raise ModelError(f"{folder}/config.json: num_labels is {shown(count)}, expected a number")
    keys = [str(i) for i in range(len(named))] if isinstance(named, dict) else []
    if not keys or set(named) != set(keys) or not all(isinstance(v, str) for v in named.values()):
        raise ModelError(
            f'{folder}/config.json: id2label is {shown(named)}, expected names: {{"0": "no", ...}}'
        )
    return tuple(named[key] for key in keys)


def _activation(folder: ModelFolder, labels: int) -> Any:
    """Return what makes probabilities of logits, as sentence-transformers and transformers do.

    Newer versions of sentence-transformers write it to config_sentence_transformers.json, those
    from 4.0 on to config.json's `sentence_transformers`, older ones to a field of its own.
    """
    raw, named = folder.raw, folder.sentence.texts.get("activation_fn")
    own = raw.get("sentence_transformers") or {}
    named = named or (own.get("activation_fn") if isinstance(own, dict) else None)
    named = named or raw.get("sbert_ce_default_activation_function")
    if named is not None:
        name = str(named).rpartition(".")[2]
        if name in _ACTIVATIONS:
            return _ACTIVATIONS[name]
        raise ModelError(
            f"{folder.path}: the activation of a cross-encoder's scores is {shown(named)}, "
            f"supported are {', '.join(_ACTIVATIONS)}"
        )
    if labels == 1 or raw.get("problem_type") == "multi_label_classification":
        return "sigmoid"
    return "identity" if raw.get("problem_type") == "regression" else "softmax"


def _separator(folder: ModelFolder) -> int | None:
    """Return the id of the token between the texts of a pair; None: the folder names none.

    It is the separator of tokenizer_config.json, or of the tokenizer's template of pairs: many
    older folders have none in the former.
    """
    tokenizer = optional_json(folder.path / TOKENIZER)
    text = _content(folder.tokenizer_config.get("sep_token"))
    if text is None:
        text = _content(optional_json(folder.path / "special_tokens_map.json").get("sep_token"))
    text = text or _between(tokenizer.get("post_processor"))
    tokens = tokenizer.get("added_tokens")
    for token in tokens if isinstance(tokens, list) else ():
        if isinstance(token, dict) and token.get("content") == text and text is not None:
            token_id = token.get("id")
            return token_id if type(token_id) is int and 0 <= token_id < 2**31 else None
    return None


def _content(token: Any) -> Any:
    """Return the text of a special token, which is an object in some files."""
    return token.get("content") if isinstance(token, dict) else token


def _between(template: object) -> object:
    """Return the token after the first text of a pair, from the tokenizer's post_processor."""
    if not isinstance(template, dict):
        return None
    steps = template.get("processors")  # a sequence of post-processors
    for step in steps if isinstance(steps, list) else [template]:
        kind = step.get("type") if isinstance(step, dict) else None
        if kind in ("BertProcessing", "RobertaProcessing"):
            named = step.get("sep")
            return named[0] if isinstance(named, list) and named else None
        if kind == "TemplateProcessing" and isinstance(step.get("pair"), list):
            parts = [part for part in step["pair"] if isinstance(part, dict)]
            first = next((i for i, part in enumerate(parts) if "Sequence" in part), len(parts))
            after = parts[first + 1].get("SpecialToken") if first + 1 < len(parts) else None
            return after.get("id") if isinstance(after, dict) else None
    return None


def output_of(folder: Path, head: Head, hidden: int) -> Output:
    """Return what the library computes for `head`.

    Raises:
        ModelError: an encoder cannot have this head, or the sizes of its layers contradict.
    """
    if isinstance(head, ScoreHead):
        raise ModelError(f"{folder} has scores of tokens, and an encoder has no such logits.")
    if isinstance(head, ClassHead):
        return Output(labels=len(head.labels), separator=head.separator)
    modes = (head.pooling,) if isinstance(head.pooling, str) else head.pooling
    dense = tuple(
        DenseShape(inputs=d.inputs, outputs=d.outputs, bias=d.bias, activation=d.activation)
        for d in head.dense
    )
    output = Output(pooling=modes, dense=dense)
    if problems := output.problems(hidden):
        raise ModelError(f"{folder} has layers that do not fit:\n{listing(problems)}")
    return output


def require_last(folder: ModelFolder, head: Head | None) -> None:
    """Check that a decoder's vector is its last token's row: no other has seen the whole text.

    Raises:
        ModelError: the head pools other rows, has linears, or is of classes.
    """
    if isinstance(head, ClassHead) or (head is None and folder.sentence.is_cross_encoder):
        raise ModelError(f"{folder.path} has a head of classes; supported are those of encoders.")
    if isinstance(head, EmbeddingHead) and (head.pooling != "last" or head.dense):
        modes = [head.pooling] if isinstance(head.pooling, str) else list(head.pooling)
        raise ModelError(
            f"{folder.path} is a decoder with the pooling {' and '.join(modes)} and "
            f"{len(head.dense)} modules Dense; supported for decoders is lasttoken alone."
        )
