"""The environment variables that Wherry reads; no other module reads any.

    WHERRY_CACHE    folder for compiled models and packed weights; default: ~/.cache/wherry
    WHERRY_TOOLS    folder of programs that targets need; default: tools in the cache
    WHERRY_CORE     path of libwherry, instead of the installed or built one
    WHERRY_WEB_CORE path of wherry-core.o, the core for pages
    WHERRY_WEB_PAGE folder of the page that runs models in browsers
    WHERRY_THREADS  threads of the CPU kernels and of conversions; default: all (physical) cores
    WHERRY_API_KEY  key of `wherry serve`, which `bench` and `ps` send
    WHERRY_LINE     the line that a shell completes; set by the scripts of `completion`
    CUDA_PATH       folder of the CUDA toolkit, or CUDA_HOME; default: searched
    ROCM_PATH       folder of ROCm; default: /opt/rocm
    ANDROID_NDK_HOME folder of Android's NDK, or ANDROID_NDK_ROOT; default: the SDK's newest
    ANDROID_HOME    folder of Android's SDK, or ANDROID_SDK_ROOT
    VULKAN_SDK      folder of Vulkan's SDK; default: the system's headers
    XDG_STATE_HOME  parent of the folder for chats' history; default: ~/.local/state

huggingface_hub reads Hugging Face's token itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from wherry.errors import UsageError

# The variable with which shells ask for completions; click names it after the program and reads it.
COMPLETE = "_WHERRY_COMPLETE"


def cache_dir() -> Path:
    """Return the cache's folder; XDG_CACHE_HOME moves its default. It may not exist yet."""
    if chosen := os.environ.get("WHERRY_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "wherry"


def state_dir() -> Path:
    """Return the folder for files that cannot be recreated: chats' history.

    The folder may not exist yet.
    """
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "wherry"


def toolchain_dir() -> Path:
    """Return the folder of programs that targets need, with npm's node_modules.

    The folder may not exist.
    """
    chosen = os.environ.get("WHERRY_TOOLS")
    return Path(chosen).expanduser() if chosen else cache_dir() / "tools"


def core_library() -> Path | None:
    """Return the path of the library in WHERRY_CORE; None: unset."""
    chosen = os.environ.get("WHERRY_CORE")
    return Path(chosen).expanduser() if chosen else None


def web_core() -> Path | None:
    """Return the path of the object file in WHERRY_WEB_CORE; None: unset."""
    chosen = os.environ.get("WHERRY_WEB_CORE")
    return Path(chosen).expanduser() if chosen else None


def web_page() -> Path | None:
    """Return the folder in WHERRY_WEB_PAGE; None: unset."""
    chosen = os.environ.get("WHERRY_WEB_PAGE")
    return Path(chosen).expanduser() if chosen else None


def threads() -> int | None:
    """Return WHERRY_THREADS as a positive number; None: unset.

    Raises:
        UsageError: the value is no positive integer.
    """
    chosen = os.environ.get("WHERRY_THREADS")
    if not chosen:
        return None
    if not chosen.isdigit() or int(chosen) < 1:
        raise UsageError(
            f"WHERRY_THREADS is {chosen!r}; it takes a whole number from 1. "
            "Type: export WHERRY_THREADS=4, or unset it."
        )
    return int(chosen)


def completing() -> bool:
    """Return whether a shell asks for completions, or for the script that does."""
    return COMPLETE in os.environ


def typed_line() -> str:
    """Return the typed line that a shell completes (`wherry completion`)."""
    return os.environ.get("WHERRY_LINE", "")


def api_key() -> str | None:
    """Return WHERRY_API_KEY; None: unset or empty."""
    return os.environ.get("WHERRY_API_KEY") or None


def cuda_path() -> Path | None:
    """Return the folder of the CUDA toolkit in CUDA_PATH or CUDA_HOME; None: unset."""
    chosen = os.environ.get("CUDA_PATH") or os.environ.get("CUDA_HOME")
    return Path(chosen).expanduser() if chosen else None


def android_ndk() -> Path | None:
    """Return the folder of Android's NDK in ANDROID_NDK_HOME or ANDROID_NDK_ROOT; None: unset."""
    chosen = os.environ.get("ANDROID_NDK_HOME") or os.environ.get("ANDROID_NDK_ROOT")
    return Path(chosen).expanduser() if chosen else None


def vulkan_sdk() -> Path | None:
    """Return the folder of Vulkan's SDK in VULKAN_SDK; None: unset."""
    chosen = os.environ.get("VULKAN_SDK")
    return Path(chosen).expanduser() if chosen else None


def android_sdk() -> Path | None:
    """Return the folder of Android's SDK in ANDROID_HOME or ANDROID_SDK_ROOT; None: unset."""
    chosen = os.environ.get("ANDROID_HOME") or os.environ.get("ANDROID_SDK_ROOT")
    return Path(chosen).expanduser() if chosen else None


def rocm_path() -> Path | None:
    """Return the folder of ROCm in ROCM_PATH; None: unset."""
    chosen = os.environ.get("ROCM_PATH")
    return Path(chosen).expanduser() if chosen else None
