"""Image files as programs without Python decode them: app/decode, by libwherry_readers."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

from .images import _library


def require_decoder(there: bool) -> None:
    """Skip, or fail in CI, where the core was built without wuffs."""
    if there:
        return
    lacking = "no wuffs: python -m wherry.tools wuffs, then cmake --preset dev and its build"
    if os.environ.get("WHERRY_REQUIRE_HTTPLIB"):  # the tools of CI
        pytest.fail(lacking)
    pytest.skip(lacking)


def decode(file: bytes) -> np.ndarray:
    """[height, width, 3] uint8; ValueError for a file that cannot be read."""
    library = _library()
    require_decoder(hasattr(library, "wherry_decode_image"))
    function = library.wherry_decode_image
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int))
    size = (ctypes.c_int * 2)()
    address = function(file, len(file), size)
    if not address:
        raise ValueError(library.wherry_reader_error().decode())
    width, height = size
    pixels = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8))
    return np.ctypeslib.as_array(pixels, (height, width, 3)).copy()
