"""Downloads the needed files of a model from the Hugging Face hub, resumably.

huggingface_hub provides listing, addresses, tokens and HF_ENDPOINT. The bytes are fetched here,
because since version 2 that library does not resume another process's download.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import huggingface_hub as hf
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # lazy there

from wherry.artifact import integrity
from wherry.artifact.manifest import FileRecord, digest, record
from wherry.base.json_file import read_object
from wherry.base.locks import making
from wherry.base.progress import Progress
from wherry.base.temporary import write_atomically
from wherry.errors import ModelError, ResourceError, listing

from .file_names import PICKLED_INDEX, SAFETENSORS_INDEX
from .repository import COMMIT, RepositoryFile, list_files

logger = logging.getLogger(__name__)

# The base class of errors in huggingface_hub's HTTP library, httpx or httpx2.
_TRANSPORT: type[Exception] = next(c for c in HfHubHTTPError.__mro__ if c.__name__ == "HTTPError")
_COMPLETE = ".wherry-download.json"  # file that marks a complete folder
_ATTEMPTS = 5  # attempts in a row without a new byte
_SPARE_BYTES = 16 << 20


def fetch(
    repo: str,
    revision: str | None = None,
    *,
    cache: Path,
    progress: Progress | None = None,
    pause: float = 1.0,
    gguf: str | None = None,
) -> Path:
    """Download a model: configuration, tokenizer and weights.

    Weights are safetensors; pickled ones are used only if there are no others and PyTorch is
    installed to read them safely.

    Complete files stay, and incomplete ones are resumed, also those of another process; of two
    concurrent processes one waits. Files in huggingface_hub's own cache are linked. Without a
    connection the last download is used.

    Args:
        repo: "org/name".
        revision: branch, tag or commit; None is the hub's default.
        cache: folder of downloads: `cache/org--name/<commit>/`.
        progress: called with ("download", bytes done, total bytes).
        pause: seconds before the first retry of a broken connection; later ones wait longer.
        gguf: a file or a quantization of a repository of GGUF, which alone is fetched.

    Raises:
        ModelError: the model or revision does not exist or is gated, has no safetensors, the
            connection fails, or bytes are damaged.
        ResourceError: the disk has too little space.
    """
    home = _home(repo, gguf, cache)
    revision = revision or "main"
    if COMMIT.fullmatch(revision) and _is_complete(home / revision):
        return home / revision  # a commit never changes, so the hub need not be asked
    try:
        with _explained(repo, revision):
            commit, files = list_files(repo, revision, gguf)
    except _Unreachable as e:
        if folder := _kept(home, revision):
            logger.warning("%s; using the download in %s", e, folder)
            return folder
        raise ModelError(f"{e} It has not been downloaded before, or not completely.") from e
    folder = home / commit
    if not _is_complete(folder):
        with making(folder, f"the download of {repo}"):
            if not _is_complete(folder):
                folder.mkdir(parents=True, exist_ok=True)
                with _explained(repo, revision):
                    _download(repo, commit, files, folder, progress, pause)
                _note(folder, files)
    _remember(home, revision, commit)
    return folder


def _home(repo: str, gguf: str | None, cache: Path) -> Path:
    """The folder of a repository's downloads; each GGUF file has its own."""
    part = f"--{quote(gguf, safe='')}" if gguf else ""
    return cache / f"{repo.replace('/', '--')}{part}"


def kept(repo: str, revision: str | None = None, *, cache: Path) -> Path | None:
    """Return the folder of an earlier complete download, without contacting the hub."""
    return _kept(cache / repo.replace("/", "--"), revision or "main")


def fetch_side_files(repo: str, revision: str | None, folder: Path, pause: float = 1.0) -> None:
    """Download all files but the weights to an empty folder; raises as `fetch` does."""
    with _explained(repo, revision or "main"):
        commit, files = list_files(repo, revision or "main")
        chosen = [f for f in files if not f.name.endswith(_WEIGHTS)]
        _download(repo, commit, chosen, folder, None, pause)


_WEIGHTS = (".safetensors", SAFETENSORS_INDEX, ".bin", PICKLED_INDEX)


class _Unreachable(ModelError):
    """The hub does not respond; an earlier download is used."""


class _Short(Exception):
    """The connection ended before the end of the file."""


def _ref(home: Path, revision: str) -> Path:
    """The file that names the commit of a branch or tag."""
    return home / "refs" / quote(revision, safe="").replace("..", "%2E%2E")


@contextmanager
def _explained(repo: str, revision: str) -> Iterator[None]:
    """Convert errors of huggingface_hub into Wherry's errors, which say what to type."""
    endpoint = hf.constants.ENDPOINT
    try:
        yield
    except GatedRepoError as e:
        raise ModelError(
            f"hf://{repo} is gated. Accept its terms at {endpoint}/{repo}, then type: hf auth login"
        ) from e
    except RepositoryNotFoundError as e:
        raise ModelError(
            f"{endpoint} has no model {repo!r}, or it is private. "
            "Check the spelling; for a private model type: hf auth login"
        ) from e
    except (RevisionNotFoundError, EntryNotFoundError) as e:
        raise ModelError(f"hf://{repo} has no revision {revision!r}. Leave out @{revision}?") from e
    except OfflineModeIsEnabled as e:
        raise _Unreachable(f"hf://{repo}: HF_HUB_OFFLINE is set. Unset it to download.") from e
    except HfHubHTTPError as e:
        text = f"{endpoint} answered {e.response.status_code} for hf://{repo}. Try again later."
        raise (_Unreachable if e.response.status_code >= 500 else ModelError)(text) from e
    except (_Short, _TRANSPORT) as e:
        reason = str(e) or type(e).__name__
        raise _Unreachable(
            f"{endpoint} cannot be reached for hf://{repo} ({reason}). Check the connection, or "
            "HF_ENDPOINT; the same command resumes."
        ) from e


def _note(folder: Path, files: list[RepositoryFile]) -> None:
    """Write the marker of a complete folder: its files, with their hashes."""
    records = {
        f.name: FileRecord(size=f.size, sha256=f.sha256) if f.sha256 else record(folder / f.name)
        for f in files
    }
    content: dict[str, Any] = {"files": {name: asdict(r) for name, r in records.items()}}
    content["digest"] = digest(content)
    write_atomically(folder / _COMPLETE, json.dumps(content, indent=2) + "\n")
    integrity.keep(folder, records)


def _is_complete(folder: Path) -> bool:
    """Return whether all files exist unchanged; a changed one is reported."""
    try:
        content = read_object(folder / _COMPLETE)
    except (OSError, ValueError):
        return False
    if content.get("digest") != digest(content):
        return False
    files = {name: FileRecord(**r) for name, r in content["files"].items()}
    weights = [name for name in files if name.endswith((".safetensors", ".bin", ".gguf"))]
    problems = integrity.damaged(folder, files, lazily=weights)
    if problems:
        logger.warning(
            "The download in %s is damaged:\n%s\nWhat is damaged is fetched again.",
            folder,
            listing(problems.values()),
        )
    return not problems


def _remember(home: Path, revision: str, commit: str) -> None:
    ref = _ref(home, revision)
    ref.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(ref, commit)


def _kept(home: Path, revision: str) -> Path | None:
    """Return the folder of an earlier download of this revision; None: there is none."""
    ref = _ref(home, revision)
    commit = ref.read_text(errors="replace").strip() if ref.is_file() else revision
    return home / commit if COMMIT.fullmatch(commit) and _is_complete(home / commit) else None


def _download(
    repo: str,
    commit: str,
    files: list[RepositoryFile],
    folder: Path,
    progress: Progress | None,
    pause: float,
) -> None:
    total = sum(f.size for f in files)
    missing = [f for f in files if not _have(repo, commit, f, folder)]
    parts = {f.name: _part_of(folder / f.name) for f in missing}
    done = total - sum(f.size for f in missing)
    here = sum(p.stat().st_size for p in parts.values() if p.is_file())
    needed, free = total - done - here + _SPARE_BYTES, shutil.disk_usage(folder).free
    if needed > free:
        raise ResourceError(
            f"hf://{repo} needs {needed / 1e9:.2f} GB more, {folder} has {free / 1e9:.2f} GB free. "
            "Make room (wherry cache prune), or choose another disk: export WHERRY_CACHE=DIR"
        )
    for file in missing:

        def report(size: int, done: int = done) -> None:
            if progress:
                progress("download", done + size, total)

        url = hf.hf_hub_url(repo, file.name, revision=commit)
        _get_patiently(url, file, parts[file.name], report, pause)
        if not file.matches(parts[file.name]):
            parts[file.name].unlink()
            raise ModelError(f"{url} arrived damaged. Type the command again to fetch it again.")
        parts[file.name].replace(folder / file.name)
        done += file.size


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _have(repo: str, commit: str, file: RepositoryFile, folder: Path) -> bool:
    """Return whether the file exists, or could be linked from huggingface_hub's cache."""
    path = folder / file.name
    if path.is_file() and file.matches(path):
        return True
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)  # the folder of a sentence-transformers module
    cached = hf.try_to_load_from_cache(repo, file.name, revision=commit)
    if not isinstance(cached, str) or not file.matches(Path(cached)):
        return False
    try:
        path.symlink_to(Path(cached).resolve())
    except OSError:  # a file system without hard links
        return False
    return True


def _get_patiently(
    url: str, file: RepositoryFile, part: Path, report: Callable[[int], None], pause: float
) -> None:
    """Download a file: retry as long as bytes arrive, else a few times."""
    failures = 0
    while True:
        before = part.stat().st_size if part.is_file() else 0
        try:
            _get(url, file.size, part, report)
            return
        except (_Short, _TRANSPORT) as e:
            if isinstance(e, HfHubHTTPError) and e.response.status_code < 500:
                raise
            arrived = part.is_file() and part.stat().st_size > before
            failures = 1 if arrived else failures + 1
            if failures >= _ATTEMPTS:
                raise
            logger.info("%s broke off (%s), trying again", url, e)
            time.sleep(pause * failures)


def _get(url: str, size: int, part: Path, report: Callable[[int], None]) -> None:
    """Append the missing bytes of the file to `part`.

    Raises:
        ModelError: the server sends more bytes than the hub lists.
    """
    start = part.stat().st_size if part.is_file() else 0
    if start > size:
        part.unlink()
        start = 0
    if start == size:
        part.touch()
        return
    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    client = hf.get_session()
    timeout = hf.constants.HF_HUB_DOWNLOAD_TIMEOUT  # seconds without a byte until a timeout
    with client.stream(
        "GET", url, headers=headers, follow_redirects=True, timeout=timeout
    ) as response:
        hf.hf_raise_for_status(response)
        if response.status_code != 206:
            start = 0  # the server does not support range requests
        with part.open("r+b" if start else "wb") as f:
            f.seek(start)
            for chunk in response.iter_bytes():
                f.write(chunk[: size + 1 - f.tell()])
                if f.tell() > size:
                    break
                report(f.tell())
            end = f.tell()
    if end > size:
        part.unlink()
        raise ModelError(f"{url} sends more than the {size} bytes that the hub lists for it.")
    if end < size:
        raise _Short(f"{end} of {size} bytes")
