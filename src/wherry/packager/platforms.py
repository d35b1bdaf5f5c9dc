"""The platforms of apps: their hosts, and names that compilers and packages use for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from wherry.errors import UsageError, listing
from wherry.targets.hosts import HOSTS

MIN_SDK = 26  # Android 8.0
# Kind of device -> target that GPUs of Android and boards are compiled for. Groups of 128 threads
# run on all of them: Mali emulates local memory in main memory, so smaller groups wait less for it.
DEVICES = {"opencl": "opencl:128", "vulkan": "vulkan:128"}
IOS = "16.0"  # oldest supported version of iOS; targets/hosts.py names it, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """An operating system on a CPU architecture, for which apps are built."""

    name: str  # value of --target
    host: str  # name in targets/hosts.py of the host that models are compiled for
    system: Literal["linux", "android", "apple"]
    folder: str  # folder of libraries in a package; for Apple, in the xcframework
    # The platform's names for LC_BUILD_VERSION; zig; Info.plist and CMake.
    platform: str = ""
    zig: str = ""
    plist: tuple[str, str] = ("", "")  # Info.plist's SupportedPlatform and SupportedPlatformVariant
    sdk: str = ""
    cpu: str = "cpu"  # target of its CPUs; with "+" there is code for several levels
    # Kind of device besides the CPU that an app can use -> target that it is compiled for.
    gpus: Mapping[str, str] = field(default_factory=lambda: DEVICES)

    @property
    def programs(self) -> str:
        """Return the folder of programs in a package; "" for platforms without a terminal."""
        return "" if self.system == "apple" else f"bin/{self.name}"

    @property
    def arch(self) -> str:
        """Return the CPU architecture: "aarch64" or "x86_64"."""
        return HOSTS[self.host].arch

    @property
    def format(self) -> str:
        """Return the format of the platform's object files."""
        return HOSTS[self.host].objects


_ARM_LEVELS = "cpu:armv8-a+"
PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform(
            name="android",
            host="android",
            system="android",
            folder="jniLibs/arm64-v8a",
            cpu=_ARM_LEVELS,
        ),
        Platform(  # emulators of phones, which run on x86-64
            name="android-x86_64", host="android-x86_64", system="android", folder="jniLibs/x86_64"
        ),
        Platform(
            name="iphone",
            host="ios",
            system="apple",
            folder="ios-arm64",
            platform=f"ios {IOS}",
            zig=f"aarch64-ios.{IOS}",
            plist=("ios", ""),
            sdk="iphoneos",
            # Older GPUs multiply no matrices; phones with one run the code for their CPU.
            gpus={"metal": "iphone:a14"},
        ),
        Platform(
            name="ios-simulator",
            host="ios-simulator",
            system="apple",
            folder="ios-arm64-simulator",
            platform=f"ios-simulator {IOS}",
            zig=f"aarch64-ios.{IOS}-simulator",
            plist=("ios", "simulator"),
            sdk="iphonesimulator",
            gpus={"metal": "iphone:simulator"},
        ),
        Platform(
            name="macabi",
            host="macabi",
            system="apple",
            folder="ios-arm64-maccatalyst",
            platform=f"macabi {IOS}",
            zig=f"aarch64-maccatalyst.{IOS}",
            plist=("ios", "maccatalyst"),
            sdk="macosx",
            gpus={"metal": "metal:macabi"},
        ),
        Platform(
            name="linux-x86_64",
            host="linux-x86_64-app",
            system="linux",
            folder="lib/linux-x86_64",
        ),
        Platform(
            name="linux-aarch64",
            host="linux-aarch64-app",
            system="linux",
            folder="lib/linux-aarch64",
            cpu=_ARM_LEVELS,
        ),
    )
}
# Values of --target: a platform, or one of its devices.
TARGETS = (
    *PLATFORMS,
    *(f"{p.name}:{device}" for p in PLATFORMS.values() for device in ("cpu", *p.gpus)),
)


def platforms_of(targets: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the kinds of devices for which each platform in `targets` gets code.

    The CPU is always among them: a machine whose driver is missing or fails runs the model, too.

    Args:
        targets: "PLATFORM" or "PLATFORM:DEVICE", elements of TARGETS.

    Raises:
        UsageError: there is no such target.
    """
    devices_of: dict[str, tuple[str, ...]] = {}
    for text in targets:
        if text not in TARGETS:
            raise UsageError(
                f"Unknown target {text!r} of apps; there are\n{listing(TARGETS)}\n"
                "Type: --target android:opencl"
            )
        name, _, device = text.partition(":")
        known = devices_of.get(name, ("cpu",))
        devices_of[name] = known if device in ("", *known) else (*known, device)
    return devices_of
