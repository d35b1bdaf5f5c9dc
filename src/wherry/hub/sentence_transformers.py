"""Reads a sentence-transformers folder: pooling, prompts, scores.

    modules.json                      the steps, in order; each may have a folder
    1_Pooling/config.json             which hidden states become the vector
    1_LogitScore/config.json          a reranker's tokens for yes and no
    config_sentence_transformers.json prompts by name
    sentence_bert_config.json         the longest text

Format: https://sbert.net/docs/sentence_transformer/usage/custom_models.html, and for rerankers
https://sbert.net/docs/cross_encoder/usage/custom_models.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wherry.artifact.head import EmbeddingHead, Head, ScoreHead
from wherry.base.json_file import parse_object
from wherry.errors import ModelError, listing, shown

from .file_names import MODULES, SENTENCE_TRANSFORMERS
from .folder import read_json

_EMBEDDINGS = (("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize"))
_SCORE = ("Transformer", "LogitScore")
_TOKENS = {"yes": "true_token_id", "no": "false_token_id"}  # field names of the module LogitScore
_MODES = {  # pooling modes of older files, one boolean field each
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def head_of(folder: Path) -> Head | None:
    """Read the output head from the folder's modules.json; None: there is no such file.

    Raises:
        ModelError: lists all unsupported modules.
    """
    if not (folder / MODULES).is_file():
        return None
    modules = _modules(folder / MODULES)
    names = tuple(str(module.get("type", "")).rpartition(".")[2] for module in modules)
    if names not in (_SCORE, *_EMBEDDINGS):
        supported = listing(" -> ".join(chain) for chain in (*_EMBEDDINGS, _SCORE))
        raise ModelError(
            f"{folder / MODULES} has the modules {' -> '.join(names) or '(none)'}; supported are\n"
            f"{supported}"
        )
    texts, limits = (_optional(folder / name) for name in SENTENCE_TRANSFORMERS[1:])
    problems = ["do_lower_case: found true, supported is false"] * bool(limits.get("do_lower_case"))
    last = _module_config(folder, modules[1])
    made: dict[str, Any] = {
        "prompts": _prompts(texts, problems),
        "default_prompt": texts.get("default_prompt_name"),
    }
    if names == _SCORE:
        made |= {ours: _token(last, theirs, problems) for ours, theirs in _TOKENS.items()}
    else:
        _check_pooling(last, problems)
        made |= {
            "normalize": names[-1] == "Normalize",
            "max_tokens": _longest(limits, problems),
        }
    if not problems:
        try:
            return ScoreHead(**made) if names == _SCORE else EmbeddingHead(**made)
        except ValueError as e:
            problems.append(str(e))
    raise ModelError(f"{folder} cannot be what its {MODULES} says:\n{listing(problems)}")


def _modules(path: Path) -> list[Mapping[str, Any]]:
    try:
        text = path.read_text()
        modules = parse_object(f'{{"modules": {text}}}')["modules"]
        if not isinstance(modules, list) or not all(isinstance(m, dict) for m in modules):
            raise ValueError("it holds no list of objects")
    except (OSError, ValueError, KeyError) as e:
        raise ModelError(f"{path} cannot be read: {e}.") from e
    return modules


def _module_config(folder: Path, module: Mapping[str, Any]) -> dict[str, Any]:
    """Read a module's config.json; the module's folder must be inside of the model's folder."""
    name = str(module.get("path", ""))
    if not name or Path(name).name != name or name.startswith("."):
        raise ModelError(f"{folder / MODULES}: path {name[:100]!r} is no folder of the model's")
    return read_json(folder / name / "config.json")


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


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


def _longest(limits: Mapping[str, Any], problems: list[str]) -> int | None:
    longest = limits.get("max_seq_length")
    if longest is None or (type(longest) is int and longest > 0):
        return longest
    problems.append(
        f"max_seq_length of {SENTENCE_TRANSFORMERS[2]}: found {shown(longest)}, expected tokens"
    )
    return None


def _check_pooling(config: Mapping[str, Any], problems: list[str]) -> None:
    """Check the pooling mode: only a decoder's last token has attended to the whole text."""
    named = config.get("pooling_mode")
    found = [mode for name, mode in _MODES.items() if config.get(name) is True]
    if named is not None:
        found += named if isinstance(named, list) else [named]
    if found != ["lasttoken"]:
        modes = " and ".join(map(str, found)) or "none"
        problems.append(f"the mode of Pooling: found {modes}, supported is lasttoken")
