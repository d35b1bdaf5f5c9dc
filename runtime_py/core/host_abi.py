"""ctypes binding of libwherry_host, which app/host/host_abi.h documents."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)
from functools import cache
from struct import Struct
from typing import Any

from wherry.errors import ArtifactError
from wherry.machine.plugins import find_host

from .records import Event, Mask, Params

ABI_VERSION = 5  # must equal WHERRY_HOST_ABI_VERSION
OK, REFUSED, GONE, FAILED, TOO_MANY = range(5)  # what a service returns
UNKNOWN, TEXT, SPECIAL = range(3)  # kinds of tokens
OPENED, CHUNK, LAST, ERROR = range(4)  # kinds of messages
FINISHES = (None, "stop", "length", "tool_calls")  # by wherry_host_totals.finish
TOTALS = Struct("6q3dq2di4x")  # wherry_host_totals
# wherry_host_message: id, kind, address and size of the JSON, and bytes of the totals, which few
# messages are asked for.
MESSAGE = Struct(f"qi4xQQ{TOTALS.size}s")

_Text = c_void_p  # a text that is no C string, because it may contain zero bytes
ENCODE = CFUNCTYPE(c_int, c_void_p, _Text, c_size_t, c_int, c_int64, c_void_p)
ENCODE_PAIR = CFUNCTYPE(c_int, c_void_p, _Text, c_size_t, _Text, c_size_t, c_void_p)
DECODE = CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, c_int, c_void_p)
ID_OF = CFUNCTYPE(c_int64, c_void_p, _Text, c_size_t)
TOKEN = CFUNCTYPE(c_int, c_void_p, c_int32, c_void_p, c_void_p)
DECODE_IMAGE = CFUNCTYPE(
    c_int, c_void_p, _Text, c_size_t, c_void_p, POINTER(c_int32), POINTER(c_int32)
)
RENDER = CFUNCTYPE(c_int, c_void_p, c_int, _Text, c_size_t, c_void_p)
CONSTRAIN = CFUNCTYPE(None, c_void_p, c_int64, _Text, c_size_t)
ADD = CFUNCTYPE(c_int, c_void_p, c_uint64, POINTER(c_int32), c_size_t, POINTER(Params), c_void_p)
ABORT = CFUNCTYPE(None, c_void_p, c_uint64)
WAKE = CFUNCTYPE(None, c_void_p)
MASK = CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, POINTER(Mask))
RELEASE = CFUNCTYPE(None, c_void_p)


class Services(ctypes.Structure):
    """The C struct `wherry_host_services`."""

    _fields_ = (
        ("size", c_size_t),
        ("context", c_void_p),
        ("encode", ENCODE),
        ("encode_pair", ENCODE_PAIR),
        ("decode", DECODE),
        ("id_of", ID_OF),
        ("token", TOKEN),
        ("decode_image", DECODE_IMAGE),
        ("render", RENDER),
        ("constrain", CONSTRAIN),
        ("add", ADD),
        ("abort", ABORT),
        ("wake", WAKE),
    )


# name -> (type of the result, types of the arguments)
_SIGNATURES: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "wherry_host_abi_version": (c_int, ()),
    "wherry_host_last_error": (c_char_p, ()),
    "wherry_host_give": (None, (c_void_p, c_char_p, c_size_t)),
    "wherry_host_open": (c_int, (c_char_p, c_size_t, POINTER(Services), POINTER(c_void_p))),
    "wherry_host_start": (c_int, (c_void_p, c_int64, c_char_p, c_size_t, c_char_p)),
    "wherry_host_prompt": (
        c_int,
        (c_void_p, c_char_p, c_size_t, c_int, POINTER(POINTER(c_int32)), POINTER(c_size_t)),
    ),
    "wherry_host_totals_of": (c_int, (c_void_p, c_int64, c_char_p)),
    "wherry_host_abort": (None, (c_void_p, c_int64)),
    "wherry_host_constrained": (None, (c_void_p, c_int64, MASK, RELEASE, c_void_p, c_char_p)),
    "wherry_host_hear": (
        None,
        (c_void_p, POINTER(Event), c_size_t, c_char_p, POINTER(c_void_p), POINTER(c_size_t)),
    ),
    "wherry_host_close": (None, (c_void_p,)),
    "wherry_request_check": (c_char_p, (c_char_p, c_char_p, c_size_t)),
    "wherry_template_traits": (c_char_p, (c_char_p, c_size_t)),
    "wherry_fill_in_marks": (c_char_p, ()),
    "wherry_calls_grammar": (c_char_p, (c_char_p, c_size_t)),
    "wherry_schema_repair": (c_char_p, (c_char_p, c_size_t)),
    "wherry_grammar_endless": (c_char_p, (c_char_p, c_size_t)),
}


@cache
def open_host() -> ctypes.CDLL:
    """Open libwherry_host; its calls release the GIL.

    Raises:
        ToolchainError: the library was not found.
        ArtifactError: the library has another version of the ABI.
    """
    path = find_host()
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    version = library.wherry_host_abi_version()
    if version != ABI_VERSION:
        raise ArtifactError(
            f"{path} speaks version {version} of the host's ABI, this runtime version "
            f"{ABI_VERSION}. Install wherry again, or build it: cmake --workflow dev"
        )
    return library


def answer_to(function: str, text: str) -> Any:
    """Return the JSON that a function of the library returns for a text; None after an error."""
    data = text.encode(errors="replace")
    answer: bytes | None = getattr(open_host(), function)(data, len(data))
    return None if answer is None else json.loads(answer)
