"""Reads a sentence-transformers folder: pooling, prompts, scores.

    modules.json                      the steps, in order; each may have a folder
    1_Pooling/config.json             which hidden states become the vector
    2_Dense/config.json               a linear after pooling, with its weights in the same folder
    1_LogitScore/config.json          a reranker's tokens for yes and no
    config_sentence_transformers.json prompts by name, and whether the folder is a cross-encoder
    sentence_bert_config.json         the longest text; newer folders have it in the tokenizer's
                                      model_max_length

Format: https://sbert.net/docs/sentence_transformer/usage/custom_models.html, and for rerankers
https://sbert.net/docs/cross_encoder/usage/custom_models.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.artifact.head import DenseLayer, EmbeddingHead, Head, ScoreHead
from wherry.base.json_file import parse_object
from wherry.errors import ModelError, listing, shown

from .file_names import MODULES, SENTENCE_TRANSFORMERS
from .folder import optional_json, read_json

_EMBEDDING = "Transformer -> Pooling [-> Dense]... [-> Normalize]"
_SCORE = ("Transformer", "LogitScore")
_TOKENS = {"yes": "true_token_id", "no": "false_token_id"}  # field names of the module LogitScore
# Pooling modes of older files, one boolean field each; and newer files' names -> ours.
_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_POOLING = {name: name for name in ("cls", "max", "mean", "weightedmean")}
_POOLING |= {"mean_sqrt_len_tokens": "mean_sqrt_len", "lasttoken": "last"}
# Classes of torch that Dense applies after its linear -> our names.
_ACTIVATIONS = {
    "Identity": "identity",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "silu",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFiles:
    """The small files that sentence-transformers adds to a folder; of one without them, empty."""

    folder: Path
    modules: tuple[Mapping[str, Any], ...] | None  # of modules.json; None: there is none
    texts: Mapping[str, Any]  # content of config_sentence_transformers.json
    limits: Mapping[str, Any]  # content of sentence_bert_config.json
    tokenizer: Mapping[str, Any]  # content of tokenizer_config.json

    @classmethod
    def read(cls, folder: Path, tokenizer: Mapping[str, Any]) -> SentenceFiles:
        """Read the files of a folder.

        Raises:
            ModelError: a file is damaged.
        """
        texts, limits = (optional_json(folder / name) for name in SENTENCE_TRANSFORMERS[1:])
        modules = _modules(folder / MODULES) if (folder / MODULES).is_file() else None
        return cls(folder=folder, modules=modules, texts=texts, limits=limits, tokenizer=tokenizer)

    @property
    def is_cross_encoder(self) -> bool:
        """Return whether config_sentence_transformers.json says that the model scores pairs.

        sentence-transformers writes it from version 5.4 on.
        """
        return self.texts.get("model_type") == "CrossEncoder"

    @property
    def longest_text(self) -> int | None:
        """Return the tokens of a text, or of a pair, at most; None: the folder does not say.

        Raises:
            ModelError: max_seq_length is no number of tokens.
        """
        problems: list[str] = []
        longest = _longest(self, problems)
        if problems:
            raise ModelError(f"{self.folder} cannot be read:\n{listing(problems)}")
        return longest

    @property
    def dense_folders(self) -> list[Path]:
        """Return the folders of the modules Dense, in their order, which have weights."""
        modules = self.modules or ()
        pairs = zip(modules, _names(modules), strict=True)
        return [
            self.folder / _path(self.folder, module) for module, name in pairs if name == "Dense"
        ]


def head_of(files: SentenceFiles) -> Head | None:
    """Return the output head that modules.json describes; None: there is no such file.

    Raises:
        ModelError: lists all unsupported modules.
    """
    folder, modules = files.folder, files.modules
    if modules is None:
        return None
    names = _names(modules)
    if files.is_cross_encoder and names == ("Transformer",):
        return None  # config.json describes its head of classes
    is_score, chain = names == _SCORE, list(names)
    if chain[-1:] == ["Normalize"]:
        chain.pop()
    while chain[2:] and chain[-1] == "Dense":
        chain.pop()
    if not is_score and (chain != ["Transformer", "Pooling"] or files.is_cross_encoder):
        kind = "a cross-encoder with" if files.is_cross_encoder else "an embedding model with"
        supported = [_EMBEDDING, f"{' -> '.join(_SCORE)} (a cross-encoder)"]
        supported += ["Transformer, a class ...ForSequenceClassification (a cross-encoder)"]
        raise ModelError(
            f"{folder / MODULES} describes {kind} the modules {' -> '.join(names) or '(none)'}; "
            f"supported are\n{listing(supported)}"
        )
    problems: list[str] = []
    if files.limits.get("do_lower_case") and not _lowercases(folder):
        problems.append(
            "do_lower_case: found true, supported is false with a tokenizer that keeps capitals"
        )
    second = _module_config(folder, modules[1])
    fields: dict[str, Any] = {
        "prompts": _prompts(files.texts, problems),
        "default_prompt": files.texts.get("default_prompt_name"),
    }
    if is_score:
        fields |= {field: _token(second, source, problems) for field, source in _TOKENS.items()}
    else:
        modes = _pooling(second, problems)
        fields |= {
            "pooling": modes[0] if len(modes) == 1 else tuple(modes),
            "dense": tuple(
                _dense(_module_config(folder, module), problems)
                for module, name in zip(modules, names, strict=True)
                if name == "Dense"
            ),
            "normalize": names[-1] == "Normalize",
            "max_tokens": _longest(files, problems),
        }
        if second.get("include_prompt") is False and any(fields["prompts"].values()):
            problems.append("include_prompt of Pooling: found false, supported is true")
    if not problems:
        try:
            return ScoreHead(**fields) if is_score else EmbeddingHead(**fields)
        except ValueError as e:
            problems.append(str(e))
    raise ModelError(f"{folder} cannot be what its {MODULES} says:\n{listing(problems)}")


def _names(modules: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(str(module.get("type", "")).rpartition(".")[2] for module in modules)


def _modules(path: Path) -> tuple[Mapping[str, Any], ...]:
    try:
        text = path.read_text()
        modules = parse_object(f'{{"modules": {text}}}')["modules"]
        if not isinstance(modules, list) or not all(isinstance(m, dict) for m in modules):
            raise ValueError("it holds no list of objects")
    except (OSError, ValueError, KeyError) as e:
        raise ModelError(f"{path} cannot be read: {e}.") from e
    return tuple(modules)


def _module_config(folder: Path, module: Mapping[str, Any]) -> dict[str, Any]:
    """Read a module's config.json."""
    return read_json(folder / _path(folder, module) / "config.json")


def _path(folder: Path, module: Mapping[str, Any]) -> str:
    """Return the name of a module's folder, which must be inside of the model's folder."""
    name = str(module.get("path", ""))
    if not name or Path(name).name != name or name.startswith("."):
        raise ModelError(f"{folder / MODULES}: path {name[:100]!r} is no folder of the model's")
    return name


def _prompts(texts: Mapping[str, Any], problems: list[str]) -> dict[str, str]:
    prompts = texts.get("prompts") or {}
    if isinstance(prompts, dict) and all(isinstance(text, str) for text in prompts.values()):
        return dict(prompts)
    problems.append(
        f"prompts of {SENTENCE_TRANSFORMERS[1]}: found {shown(prompts)}, expected texts by name"
    )
    return {}


def _token(config: Mapping[str, Any], name: str, problems: list[str]) -> int:
    token = config.get(name)
    if type(token) is int and 0 <= token < 2**31:
        return token
    problems.append(f"{name} of LogitScore: found {shown(token)}, expected a token id")
    return 0


def _lowercases(folder: Path) -> bool:
    """Return whether the tokenizer itself lowercases texts."""
    normalizer = optional_json(folder / "tokenizer.json").get("normalizer")
    steps = normalizer.get("normalizers") if isinstance(normalizer, dict) else None
    for step in steps if isinstance(steps, list) else [normalizer]:
        if isinstance(step, dict) and (
            step.get("type") == "Lowercase" or step.get("lowercase") is True
        ):
            return True
    return False


def _longest(files: SentenceFiles, problems: list[str]) -> int | None:
    longest = files.limits.get("max_seq_length")
    if longest is None:
        # Tokenizers without a limit have a huge number, which transformers writes for infinity.
        limit = files.tokenizer.get("model_max_length")
        return limit if type(limit) is int and 0 < limit < 2**31 else None
    if type(longest) is int and longest > 0:
        return longest
    problems.append(
        f"max_seq_length of {SENTENCE_TRANSFORMERS[2]}: found {shown(longest)}, expected tokens"
    )
    return None


def _pooling(config: Mapping[str, Any], problems: list[str]) -> list[str]:
    """Return the pooling modes, in the order of their parts of the vector."""
    named = config.get("pooling_mode")
    names = [mode for name, mode in _MODES.items() if config.get(name) is True]
    if named is not None:
        names += named if isinstance(named, list) else [named]
    wrong = [mode for mode in names if not isinstance(mode, str) or mode not in _POOLING]
    if not names or wrong or len(set(names)) < len(names):  # a mode twice is two spellings of one
        modes = " and ".join(map(shown, wrong or names)) or "none"
        problems.append(f"the mode of Pooling: found {modes}, supported are {', '.join(_POOLING)}")
        return ["last"]
    return [_POOLING[mode] for mode in names]


def _dense(config: Mapping[str, Any], problems: list[str]) -> DenseLayer:
    """Read the configuration of a module Dense."""
    sizes: list[Any] = [config.get("in_features"), config.get("out_features")]
    activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    count = len(problems)
    if not all(type(size) is int and 0 < size <= 2**20 for size in sizes):
        problems.append(f"in_features, out_features of Dense: found {shown(sizes)}")
    if activation not in _ACTIVATIONS:
        supported = ", ".join(_ACTIVATIONS)
        problems.append(f"activation of Dense: found {shown(activation)}, supported: {supported}")
    bias = config.get("bias", True)
    if not isinstance(bias, bool):
        problems.append(f"bias of Dense: found {shown(bias)}, expected true or false")
    if len(problems) > count:
        return DenseLayer(inputs=1, outputs=1)
    inputs, outputs = sizes
    kind: Any = _ACTIVATIONS[activation]
    return DenseLayer(inputs=inputs, outputs=outputs, bias=bias, activation=kind)
