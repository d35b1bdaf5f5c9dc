"""Selects the needed files of a repository on the Hugging Face hub."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import huggingface_hub as hf
from huggingface_hub.errors import HfHubHTTPError

from wherry.artifact.manifest import FURTHER_TEMPLATES, SIDE_FILES
from wherry.base import extras
from wherry.errors import ModelError, ToolchainError

from .file_names import (
    DENSE_FILES,
    MISTRAL_INDEX,
    MISTRAL_PARAMS,
    MISTRAL_WEIGHTS,
    MODELOPT,
    MODULE_FILES,
    OLDER_TOKENIZERS,
    PICKLED,
    PICKLED_INDEX,
    SAFETENSORS,
    SAFETENSORS_INDEX,
    SENTENCE_TRANSFORMERS,
)
from .gguf_files import SUFFIX, chosen

COMMIT = re.compile("[0-9a-f]{40}")
_SHA256 = re.compile("[0-9a-f]{64}")
_CHUNK = 1 << 20  # bytes to hash at a time
# Names that Windows takes for a path, or that are hidden; a needed file has at most one "/".
_LEAVES_FOLDER = re.compile(r"[\\:\0]|(?:^|/)\.")
_ABOUT = ("README.md", "LICENSE*", MODELOPT)  # files about the model's licence, use and weights


@dataclass(frozen=True, slots=True)
class RepositoryFile:
    """A file of a repository, as the hub describes it."""

    name: str
    size: int  # bytes
    sha256: str | None  # SHA-256 of a file in large storage; None for other files
    git: str | None  # SHA-1 of other files' git blob

    def matches(self, path: Path) -> bool:
        """Return whether a file's content equals the hub's description."""
        if path.stat().st_size != self.size:
            return False
        expected = self.sha256 or self.git
        digest = hashlib.sha256() if self.sha256 else hashlib.sha1(b"blob %d\0" % self.size)
        with path.open("rb") as f:
            while piece := f.read(_CHUNK):
                digest.update(piece)
        return expected is None or digest.hexdigest() == expected


def list_files(
    repo: str, revision: str, gguf: str | None = None
) -> tuple[str, list[RepositoryFile]]:
    """Return the revision's commit, and its files that a conversion needs.

    Args:
        repo: "org/name".
        revision: branch, tag or commit.
        gguf: a file or a quantization of a repository of GGUF; only that is needed.

    Raises:
        ModelError: the repository has no model that can be read.
        ToolchainError: reading its weights needs PyTorch, which is not installed.
    """
    try:
        info = hf.HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=30)
    except HfHubHTTPError:  # a refusal with a reason, some of which are a ValueError
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as e:  # what another server's cause
        raise ModelError(
            f"{hf.constants.ENDPOINT} does not describe hf://{repo} as a hub does "
            f"({type(e).__name__}: {e}). Check the spelling, or HF_ENDPOINT."
        ) from e
    if not isinstance(info.sha, str) or not COMMIT.fullmatch(info.sha):
        raise ModelError(
            f"{hf.constants.ENDPOINT} names the commit {str(info.sha)[:100]!r} for hf://{repo}; a "
            "commit has 40 hexadecimal digits. Is HF_ENDPOINT a hub?"
        )
    siblings = [s for s in info.siblings or [] if not _LEAVES_FOLDER.search(str(s.rfilename))]
    names = {s.rfilename for s in siblings}
    if gguf is not None:
        only = set(chosen(names, gguf, f"hf://{repo}"))
        return info.sha, [_described(s) for s in siblings if s.rfilename in only]
    weights = [SAFETENSORS] if SAFETENSORS in names else [SAFETENSORS_INDEX, "*.safetensors"]
    pickles = names & {PICKLED, PICKLED_INDEX}
    if pickles and not names & {SAFETENSORS, SAFETENSORS_INDEX}:
        if not extras.installed("torch"):
            raise ToolchainError(
                f"hf://{repo} has no safetensors but {pickles.pop()}, which only PyTorch reads "
                f"safely. Type: {extras.TORCH}"
            )
        single = PICKLED in names
        weights = [PICKLED] if single else [PICKLED_INDEX, "pytorch_model-*.bin"]
    if not names & {"config.json", SAFETENSORS, SAFETENSORS_INDEX} and MISTRAL_PARAMS in names:
        return info.sha, _of_mistral(siblings, names, repo)
    files = [_described(s) for s in siblings if _is_needed(s.rfilename, weights)]
    lacking = [] if "config.json" in names else ["config.json"]
    lacking += (
        []
        if names & {SAFETENSORS, SAFETENSORS_INDEX} or pickles
        else [f"{SAFETENSORS} or {SAFETENSORS_INDEX}"]
    )
    if lacking:
        others = ", ".join(sorted(n for n in names if Path(n).suffix != ".md")[:8])
        if any(n.lower().endswith(SUFFIX) for n in names):
            chosen(names, "?", f"hf://{repo}")
        raise ModelError(
            f"hf://{repo} has no {' and no '.join(lacking)}, so it is not a model that can be "
            f"read; it has {others or 'no files'}."
        )
    return info.sha, files


def _of_mistral(siblings: list[Any], names: set[str], repo: str) -> list[RepositoryFile]:
    """Return the files of a repository in Mistral's own layout alone.

    Raises:
        ModelError: it has no weights in safetensors.
    """
    if not names & {MISTRAL_WEIGHTS, MISTRAL_INDEX}:
        raise ModelError(
            f"hf://{repo} has {MISTRAL_PARAMS} and no {MISTRAL_WEIGHTS}, so it is not a model that "
            "can be read."
        )
    single = MISTRAL_WEIGHTS in names
    weights = [MISTRAL_WEIGHTS] if single else ["consolidated-*.safetensors", MISTRAL_INDEX]
    needed = (MISTRAL_PARAMS, "tokenizer.model.v*", *SIDE_FILES, *OLDER_TOKENIZERS, *_ABOUT)
    return [
        _described(s)
        for s in siblings
        if any(fnmatch(s.rfilename, pattern) for pattern in (*needed, *weights))
        and "/" not in s.rfilename
    ]


def _described(file: Any) -> RepositoryFile:
    """What the hub says of a file.

    Raises:
        ModelError: a size or a checksum is of another form.
    """
    sha256 = file.lfs.sha256 if file.lfs else None
    size = file.size or 0
    hashes = ((sha256, _SHA256), (file.blob_id, COMMIT))  # a git blob's SHA-1 is like a commit's
    good = all(h is None or (isinstance(h, str) and form.fullmatch(h)) for h, form in hashes)
    if not good or type(size) is not int or size < 0:
        raise ModelError(
            f"{hf.constants.ENDPOINT} lists {file.rfilename} with size {size!r:.100}, SHA-256 "
            f"{sha256!r:.100} and git blob {file.blob_id!r:.100}, which are none. Is HF_ENDPOINT a "
            "hub?"
        )
    return RepositoryFile(file.rfilename, size, sha256, file.blob_id)


def _is_needed(name: str, weights: list[str]) -> bool:
    in_folders = (MODULE_FILES, *DENSE_FILES, FURTHER_TEMPLATES)
    if name.count("/") == 1 and any(fnmatch(name, pattern) for pattern in in_folders):
        return True
    # these files repeat the weights in another layout
    if "/" in name or fnmatch(name, "consolidated*"):
        return False
    return any(
        fnmatch(name, pattern)
        for pattern in (*SIDE_FILES, *OLDER_TOKENIZERS, *SENTENCE_TRANSFORMERS, *_ABOUT, *weights)
    )
