"""Collects the generated device code from TVM's modules, for `--debug-dump`."""

from __future__ import annotations

from typing import Any

# Kind of TVM module -> formats that its inspect_source accepts, each with a file suffix.
_SOURCES = {
    "cuda": (("cuda", "cu"),),
    "hip": (("asm", "s"), ("llvm", "ll")),
    "metal": (("metal", "metal"),),
    "opencl": (("cl", "cl"),),
    "webgpu": (("wgsl", "wgsl"),),
}


def device_sources(module: Any) -> dict[str, str]:
    """Return the generated code of all device modules that `module` imports, by file suffix."""
    sources: dict[str, str] = {}
    for imported in module.imports:
        for form, suffix in _SOURCES.get(imported.kind, ()):
            if text := str(imported.inspect_source(form)):
                sources[suffix] = sources.get(suffix, "") + text
        for suffix, text in device_sources(imported).items():
            sources[suffix] = sources.get(suffix, "") + text
    return sources
