"""wherry_app_download of the library for apps, with Python's HTTP as the app's."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from .programs import BUILD

CANCELLED, UNREACHABLE, DAMAGED, NO_SPACE = -7, -8, -9, -10
INVALID_ARGUMENT, INCOMPATIBLE, BUSY = -1, -4, -5
_AT_ONCE = 1 << 10  # bytes: small, so that files of tests come in several pieces

_Fetch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
_Report = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64
)


class _Fetcher(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("context", ctypes.c_void_p), ("fetch", _Fetch)]


class _Progress(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("context", ctypes.c_void_p), ("report", _Report)]


@cache
def _library() -> Any:
    library = ctypes.CDLL(str(BUILD / "libwherry_app.so"))
    library.wherry_app_last_error.restype = ctypes.c_char_p
    answer = ctypes.c_void_p
    library.wherry_app_answer_status.argtypes = [answer, ctypes.c_int]
    library.wherry_app_answer_bytes.argtypes = [answer, ctypes.c_char_p, ctypes.c_size_t]
    library.wherry_app_answer_failed.argtypes = [answer, ctypes.c_char_p]
    return library


@dataclass(frozen=True)
class Result:
    """What a download said."""

    status: int
    error: str  # "" where the status is 0
    reports: list[tuple[str, int, int]]  # phase, done, total


def download(
    url: str,
    folder: Path,
    *,
    report: Callable[[str, int, int], bool] = lambda *_: True,
    before: Callable[[str], object] = lambda _: None,
    **options: Any,
) -> Result:
    """Run one; `report` gives False to end it, `before` is called before each request."""
    reports: list[tuple[str, int, int]] = []

    def said(_: object, phase: bytes, done: int, total: int) -> int:
        reports.append((phase.decode(), done, total))
        return 0 if report(phase.decode(), done, total) else 1

    def fetch(_: object, address: bytes, start: int, answer: int) -> None:
        before(address.decode())
        _fetch(address.decode(), start, answer)

    fetcher = _Fetcher(ctypes.sizeof(_Fetcher), None, _Fetch(fetch))
    progress = _Progress(ctypes.sizeof(_Progress), None, _Report(said))
    status = _library().wherry_app_download(
        url.encode(),
        str(folder).encode(),
        json.dumps({"retry_wait": 1, **options}).encode(),
        ctypes.byref(fetcher),
        ctypes.byref(progress),
    )
    error = _library().wherry_app_last_error().decode() if status else ""
    return Result(status, error, reports)


def _fetch(url: str, start: int, answer: int) -> None:
    library = _library()
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        with urlopen(Request(url, headers=headers), timeout=10) as response:
            if library.wherry_app_answer_status(answer, response.status):
                return
            while piece := response.read(_AT_ONCE):
                if library.wherry_app_answer_bytes(answer, piece, len(piece)):
                    return
    except HTTPError as e:
        with e:
            library.wherry_app_answer_status(answer, e.code)
    except (OSError, HTTPException) as e:
        library.wherry_app_answer_failed(answer, (str(e) or type(e).__name__).encode())


def missing(manifest: bytes, folder: Path) -> list[dict[str, Any]]:
    """What wherry_app_missing lists; its status, where it is not 0, is an AssertionError."""
    library, names = _library(), ctypes.c_void_p()
    library.wherry_app_missing.argtypes = [
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_void_p),
    ]
    library.wherry_app_free.argtypes = [ctypes.c_void_p]
    status = library.wherry_app_missing(
        manifest, len(manifest), str(folder).encode(), ctypes.byref(names)
    )
    assert status == 0, (status, library.wherry_app_last_error().decode())
    try:
        listed: list[dict[str, Any]] = json.loads(ctypes.string_at(names.value or 0))
        return listed
    finally:
        library.wherry_app_free(names)
