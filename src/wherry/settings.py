"""The environment variables that Wherry reads; no other module reads any.

    WHERRY_CACHE    folder for compiled models and packed weights; default: ~/.cache/wherry
    WHERRY_TOOLS    folder of programs that targets need; default: tools in the cache
    WHERRY_CORE     path of libwherry, in place of the installed or built one
    WHERRY_WEB_CORE path of wherry-core.o, the core for pages, likewise
    WHERRY_WEB_PAGE folder of the page that runs models in browsers, likewise
    WHERRY_THREADS  threads of the CPU kernels; default: what the core finds
    WHERRY_API_KEY  key that `wherry serve` asks its clients for, and `bench` and `ps` send
    WHERRY_LINE     the line that a shell wants to complete; set by the scripts of `completion`
    CUDA_PATH       folder of the CUDA toolkit, or CUDA_HOME; default: where it is found
    ROCM_PATH       folder of ROCm; default: /opt/rocm
    ANDROID_NDK_HOME folder of Android's NDK, or ANDROID_NDK_ROOT; default: the newest of the SDK's
    ANDROID_HOME    folder of Android's SDK, or ANDROID_SDK_ROOT
    XDG_STATE_HOME  folder of the folder for what was typed in chats; default: ~/.local/state

Hugging Face's token is left to huggingface_hub.
"""

from __future__ import annotations

import os
from pathlib import Path

from wherry.errors import UsageError


def cache_dir() -> Path:
    """Folder of what can be made again; XDG_CACHE_HOME moves its default. It may not exist yet."""
    if chosen := os.environ.get("WHERRY_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "wherry"


def state_dir() -> Path:
    """Folder of what cannot be made again: what was typed. It may not exist yet."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "wherry"


def tools_dir() -> Path:
    """Folder of programs that targets need, where npm puts node_modules. It may not exist."""
    chosen = os.environ.get("WHERRY_TOOLS")
    return Path(chosen).expanduser() if chosen else cache_dir() / "tools"


def core_library() -> Path | None:
    """The library that WHERRY_CORE names, or None if it is not set."""
    chosen = os.environ.get("WHERRY_CORE")
    return Path(chosen).expanduser() if chosen else None


def web_core() -> Path | None:
    """The object that WHERRY_WEB_CORE names, or None if it is not set."""
    chosen = os.environ.get("WHERRY_WEB_CORE")
    return Path(chosen).expanduser() if chosen else None


def web_page() -> Path | None:
    """The folder that WHERRY_WEB_PAGE names, or None if it is not set."""
    chosen = os.environ.get("WHERRY_WEB_PAGE")
    return Path(chosen).expanduser() if chosen else None


def threads() -> int | None:
    """WHERRY_THREADS as a positive number, or None if it is not set.

    Raises:
        UsageError: it is not a positive whole number.
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


def typed_line() -> str:
    """What has been typed so far, when a shell asks how it may go on (`wherry completion`)."""
    return os.environ.get("WHERRY_LINE", "")


def api_key() -> str | None:
    """WHERRY_API_KEY, or None if it is not set or empty."""
    return os.environ.get("WHERRY_API_KEY") or None


def cuda_path() -> Path | None:
    """CUDA's toolkit as CUDA_PATH or CUDA_HOME has it, or None if neither is set."""
    chosen = os.environ.get("CUDA_PATH") or os.environ.get("CUDA_HOME")
    return Path(chosen).expanduser() if chosen else None


def android_ndk() -> Path | None:
    """Android's NDK as ANDROID_NDK_HOME or ANDROID_NDK_ROOT has it, or None if neither is set."""
    chosen = os.environ.get("ANDROID_NDK_HOME") or os.environ.get("ANDROID_NDK_ROOT")
    return Path(chosen).expanduser() if chosen else None


def android_sdk() -> Path | None:
    """Android's SDK as ANDROID_HOME or ANDROID_SDK_ROOT has it, or None if neither is set."""
    chosen = os.environ.get("ANDROID_HOME") or os.environ.get("ANDROID_SDK_ROOT")
    return Path(chosen).expanduser() if chosen else None


def rocm_path() -> Path | None:
    """ROCm as ROCM_PATH has it, or None if it is not set."""
    chosen = os.environ.get("ROCM_PATH")
    return Path(chosen).expanduser() if chosen else None
