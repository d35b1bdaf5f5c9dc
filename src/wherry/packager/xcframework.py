"""Writes an .xcframework: Apple's static libraries in one folder for Xcode.

The layout is that of `xcodebuild -create-xcframework -library ... -headers ...`, without a Mac.
"""

from __future__ import annotations

import plistlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .platforms import Platform

NAME = "Wherry.xcframework"
LIBRARY, HEADERS = "libwherry.a", "Headers"


def write_info(folder: Path, platforms: Mapping[str, Platform]) -> None:
    """Write Info.plist.

    Args:
        folder: the .xcframework, with LIBRARY and HEADERS in a folder for each platform.
        platforms: folder name -> platform.
    """
    info = {
        "AvailableLibraries": [_library(name, platform) for name, platform in platforms.items()],
        "CFBundlePackageType": "XFWK",
        "XCFrameworkFormatVersion": "1.0",
    }
    with (folder / "Info.plist").open("wb") as f:
        plistlib.dump(info, f)


def _library(name: str, platform: Platform) -> dict[str, Any]:
    system, variant = platform.plist
    record = {
        "BinaryPath": LIBRARY,
        "HeadersPath": HEADERS,
        "LibraryIdentifier": name,
        "LibraryPath": LIBRARY,
        "SupportedArchitectures": [platform.arch.replace("aarch64", "arm64")],
        "SupportedPlatform": system,
    }
    return record | ({"SupportedPlatformVariant": variant} if variant else {})
