"""The source of a device's code, from TVM's code generators, for `--debug-dump`."""

from __future__ import annotations

from typing import Any

# Kind of module -> argument of its inspect_source, and file suffix.
_SOURCES = {
    "cuda": (("cuda", "cu"),),
    "hip": (("asm", "s"), ("llvm", "ll")),
    "metal": (("metal", "metal"),),
    "opencl": (("cl", "cl"),),
    "webgpu": (("wgsl", "wgsl"),),
}


def device_sources(module: Any) -> dict[str, str]:
    """Sources of all device modules that a runtime module imports, by file suffix."""
    found: dict[str, str] = {}
    for imported in module.imports:
        for form, suffix in _SOURCES.get(imported.kind, ()):
            if text := str(imported.inspect_source(form)):
                found[suffix] = found.get(suffix, "") + text
        for suffix, text in device_sources(imported).items():
            found[suffix] = found.get(suffix, "") + text
    return found
