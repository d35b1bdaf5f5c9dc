"""Chooses the projector file of a GGUF model: the one that is named, or one next to the model."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wherry.errors import ModelError, UsageError, listing
from wherry.hub.gguf_files import SUFFIX, is_projector

from .header import Header, read_header
from .projector import misfit

NONE = "none"  # ignore projector files
_F16 = re.compile(r"(?<![a-z])f16", re.IGNORECASE)  # in a file's name; bf16 is another type
_log = logging.getLogger(__name__)


def candidates(file: Path, mmproj: str | None) -> tuple[Path, ...]:
    """Return the files that may be the projector of a model.

    Args:
        file: one of the model's files.
        mmproj: a file, "none", or None: files next to the model whose names say so.

    Raises:
        UsageError: there is no such file.
    """
    if mmproj == NONE:
        return ()
    if mmproj is None:
        try:
            files = sorted(p for p in file.parent.iterdir() if is_projector(p.name))
        except OSError:  # a folder that cannot be listed
            return ()
        return tuple(p for p in files if p.suffix.lower() == SUFFIX and p.is_file())
    path = Path(mmproj).expanduser()
    if not path.is_file():
        raise UsageError(
            f"--mmproj {mmproj}: there is no such file. It takes the GGUF file of a projector, or "
            f"{NONE}, which ignores those next to the model."
        )
    return (path,)


def chosen(
    paths: Sequence[Path], text: Mapping[str, Any], tokens: Sequence[str], *, named: bool
) -> Header | None:
    """Return the header of the projector among some files; None: none is the text model's.

    Of several that fit, it is the one in float16. A file next to the model may be another model's:
    then it is left out, with a warning.

    Args:
        paths: the files, from `candidates`.
        text: fields of the text model's config.json.
        tokens: the text model's vocabulary.
        named: whether the user named the file, which must fit then.

    Raises:
        ModelError: a file is damaged, the named one does not fit, or several do.
    """
    headers = [_header(path) for path in paths]
    reasons = {h.path: misfit(h, text, tokens) for h in headers}
    fitting = [h for h in headers if not reasons[h.path]]
    if len(fitting) > 1:
        fitting = [h for h in fitting if _F16.search(h.path.name)] or fitting
    if len(fitting) > 1:
        raise ModelError(
            "There are several projector files next to the model:\n"
            f"{listing(str(h.path) for h in fitting)}\n"
            f"Name one of them, or none: --mmproj FILE, --mmproj {NONE}"
        )
    if fitting:
        return fitting[0]
    for path, reason in reasons.items():
        if named:
            raise ModelError(f"{path} {reason}. The text model runs without it: --mmproj {NONE}")
        _log.warning(
            "%s %s. It is left out: the model takes no images. To name another file: --mmproj FILE",
            *(path, reason),
        )
    return None


def _header(path: Path) -> Header:
    try:
        return read_header(path)
    except ModelError as e:
        raise ModelError(f"{e}\nThe text model runs without it: --mmproj {NONE}") from e
