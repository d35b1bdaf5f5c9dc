"""Image files as programs without Python decode them: app/decode, by libwherry_readers."""

from __future__ import annotations

import ctypes

import numpy as np

from .images import _library


def decode(file: bytes) -> np.ndarray:
    """[height, width, 3] uint8; ValueError for a file that cannot be read."""
    library = _library()
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
