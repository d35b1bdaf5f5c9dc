"""Plugins of GPUs inside an app's library, and what compiling them takes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from wherry.base import settings
from wherry.targets.toolchains.toolchain import Requirement

from .platforms import Platform

_VULKAN = Path("vulkan/vulkan_core.h")
_METAL = ('"objc"', 'framework "Foundation"', 'framework "Metal"')


def requirements(platform: Platform, devices: Collection[str]) -> tuple[Requirement, ...]:
    """Return what the plugins need besides a compiler: Vulkan's headers, which an NDK has."""
    if "vulkan" not in devices or platform.system == "android":
        return ()
    headers = _vulkan_headers()
    return (
        Requirement(
            name="the headers of Vulkan",
            installed=str(headers) if headers else None,
            fix="apt-get install libvulkan-dev",
        ),
    )


def missing(platform: Platform, devices: Collection[str]) -> tuple[Requirement, ...]:
    """Return the requirements that are not installed."""
    return tuple(one for one in requirements(platform, devices) if one.installed is None)


def libraries(devices: Collection[str]) -> tuple[str, ...]:
    """Return the libraries that an app links for the plugins, as a module map names them."""
    return _METAL if "metal" in devices else ()


def definitions(platform: Platform, devices: Collection[str]) -> list[tuple[str, str]]:
    """Return the CMake variables with which the plugins for `devices` are compiled in."""
    headers = _vulkan_headers() if requirements(platform, devices) else None
    return [
        ("WHERRY_DRIVERS", ";".join(sorted(devices))),
        ("WHERRY_VULKAN_HEADERS", str(headers or "")),
    ]


def _vulkan_headers() -> Path | None:
    sdk = settings.vulkan_sdk()
    roots = [sdk] if sdk else []
    roots += [Path(root) for root in ("/usr", "/usr/local", "/opt/homebrew")]
    places = [root / "include" for root in roots]
    return next((place for place in places if (place / _VULKAN).is_file()), None)
