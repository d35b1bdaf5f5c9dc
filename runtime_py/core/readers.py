"""ctypes binding of libwherry_readers, which app/readers/readers_abi.h documents."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

from wherry.errors import ArtifactError
from wherry.machine.plugins import find_readers

ABI_VERSION = 2  # must equal WHERRY_READERS_ABI_VERSION

# name -> (type of the result, types of the arguments)
_SIGNATURES: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "wherry_readers_abi_version": (c_int, ()),
    "wherry_reader_error": (c_char_p, ()),
    "wherry_reader_open": (c_void_p, (c_char_p, c_size_t)),
    "wherry_reader_push": (c_char_p, (c_void_p, c_char_p, c_size_t)),
    "wherry_reader_finish": (c_char_p, (c_void_p,)),
    "wherry_reader_close": (None, (c_void_p,)),
    "wherry_history_open": (c_void_p, (c_char_p, c_size_t)),
    "wherry_history_adapt": (c_char_p, (c_void_p, c_char_p, c_size_t)),
    "wherry_history_close": (None, (c_void_p,)),
    "wherry_grammar_endless": (c_char_p, (c_char_p, c_size_t)),
    "wherry_schema_repair": (c_char_p, (c_char_p, c_size_t)),
}


@cache
def open_readers() -> ctypes.PyDLL:
    """Open libwherry_readers. Its calls keep the GIL: they take less time than to get it again.

    Raises:
        ToolchainError: the library was not found.
        ArtifactError: the library has another version of the ABI.
    """
    path = find_readers()
    library = ctypes.PyDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    found = library.wherry_readers_abi_version()
    if found != ABI_VERSION:
        raise ArtifactError(
            f"{path} speaks version {found} of the readers' ABI, this runtime version "
            f"{ABI_VERSION}. Install wherry again, or build it: cmake --workflow dev"
        )
    return library
