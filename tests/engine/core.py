"""The C ABI of engine/include/wherry.h through ctypes, as small as these tests need it."""

from __future__ import annotations

import ctypes
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tvm_ffi  # noqa: F401  (loads libtvm_ffi.so, which libwherry.so is linked with)

from wherry.runtime.core import abi as core_abi
from wherry.runtime.core.records import Event, Params

WHERRY_RUNNING, WHERRY_STOP, WHERRY_LENGTH, WHERRY_ABORTED, WHERRY_ERROR = range(5)
INVALID_ARGUMENT, NOT_FOUND, INCOMPATIBLE = -1, -2, -4


class CoreError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def load_library(path: Path) -> ctypes.CDLL:
    """Load TVM's run time without its Python package, then the core."""
    spec = importlib.util.find_spec("tvm")
    assert spec is not None and spec.origin is not None
    runtime = Path(spec.origin).parent / "lib" / "libtvm_runtime.so"
    ctypes.CDLL(str(runtime), ctypes.RTLD_GLOBAL)
    core = ctypes.CDLL(str(path))
    core_abi.declare(core)
    return core


class Model:
    def __init__(
        self,
        core: ctypes.CDLL,
        lib: Path,
        weights: Path,
        options: Mapping[str, Any] | None = None,
        device: str = "cpu",
    ) -> None:
        self.core = core
        self.handle = ctypes.c_void_p()
        text = json.dumps(options or {}).encode()
        paths = (str(lib).encode(), str(weights).encode(), device.encode())
        self.check(core.wherry_model_load(*paths, text, ctypes.byref(self.handle)))

    def check(self, status: int) -> None:
        if status:
            raise CoreError(status, self.core.wherry_last_error().decode())

    def metadata(self) -> dict[str, Any]:
        return json.loads(self.core.wherry_model_metadata(self.handle))

    def generate(
        self, prompts: list[list[int]], config: Mapping[str, Any] | None = None, **params: Any
    ) -> list[list[int]]:
        """Tokens of each prompt, all in one engine, on the engine's own thread."""
        engine = ctypes.c_void_p()
        text = json.dumps(config or {}).encode()
        self.check(self.core.wherry_engine_create(self.handle, None, text, ctypes.byref(engine)))
        try:
            return self._generate(engine, prompts, params)
        finally:
            self.core.wherry_engine_destroy(engine)

    def _generate(
        self, engine: ctypes.c_void_p, prompts: list[list[int]], params: Mapping[str, Any]
    ) -> list[list[int]]:
        given = Params()
        self.core.wherry_params_init(ctypes.byref(given))
        for name, value in params.items():
            setattr(given, name, value)
        for i, prompt in enumerate(prompts):
            tokens = (ctypes.c_int32 * len(prompt))(*prompt)
            self.check(
                self.core.wherry_engine_add(
                    engine, ctypes.c_uint64(i), tokens, len(prompt), ctypes.byref(given)
                )
            )
        self.check(self.core.wherry_engine_start(engine))
        outputs: list[list[int]] = [[] for _ in prompts]
        left, events, n = len(prompts), (Event * 16)(), ctypes.c_size_t()
        while left:
            self.check(self.core.wherry_engine_wait(engine, events, 16, 20000, ctypes.byref(n)))
            assert n.value, "no event for 20 s"
            for event in events[: n.value]:
                if event.finish == WHERRY_ERROR:
                    raise CoreError(0, self.core.wherry_last_error().decode())
                outputs[event.id].append(event.token)
                left -= event.finish != WHERRY_RUNNING
        return outputs

    def free(self) -> None:
        self.check(self.core.wherry_model_free(self.handle))
