"""`wherry package` for apps: what is in the folder, and what is said without a compiler."""

from __future__ import annotations

import json
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from wherry.artifact import sha256_of
from wherry.errors import UsageError
from wherry.native import object_files, package, tools, xcframework
from wherry.native.check import LIBC, RUNTIME
from wherry.native.platforms import PLATFORMS

from ..support.command import wherry

LIMITS = ("--max-batch", "8", "--prefill-chunk", "64")


@pytest.fixture(scope="module")
def without_ndk(tmp_path_factory):
    """A package for two systems of Android on a machine without an NDK."""
    out = tmp_path_factory.mktemp("app") / "out"
    targets = ("--target", "android", "--target", "android-x86_64")
    environment = {"ANDROID_NDK_HOME": "/none", "ANDROID_HOME": "/none"}
    return out, wherry("package", "demo", *targets, *LIMITS, "-o", str(out), **environment)


@pytest.mark.cpu
def test_without_an_ndk_it_says_what_was_made_and_what_to_type(without_ndk):
    out, done = without_ndk
    assert done.returncode == 5 and "Traceback" not in done.stderr
    assert f"{out} is written, but libraries are missing in it" in done.stderr
    for name, arch in (("android", "aarch64"), ("android-x86_64", "x86_64")):
        assert f"{name}: models' code is in {out / 'objects' / name}" in done.stderr
        objects = [o for p in (out / "objects" / name).glob("*.o") for o in object_files.read(p)]
        assert {(o.format, o.arch) for o in objects} == {("ELF", arch)}
        needed = object_files.undefined(objects)
        assert needed <= RUNTIME | LIBC and "TVMBackendParallelLaunch" in needed
        listed = (out / "objects" / name / "models.cc").read_text()
        # A linker takes an object out of an archive for a symbol that something refers to.
        assert all(any(symbol in listed for symbol in o.defined) for o in objects)
    assert "sdkmanager" in done.stderr and "ANDROID_NDK_HOME" in done.stderr


@pytest.mark.cpu
def test_assets_are_one_folder_for_all_systems(without_ndk):
    out, _ = without_ndk
    index = json.loads((out / package.INDEX).read_text())
    (model,) = index["models"]
    folder = out / model["folder"]
    manifest = read_manifest_of_assets(folder)
    assert model["symbols"] == manifest["target"]["objects"]["symbols"]
    assert {"tokenizer.json", "tensor-cache.json", "params_shard_0.bin"} <= set(manifest["files"])
    for name, file in manifest["files"].items():
        path = folder / name
        assert (path.stat().st_size, sha256_of(path)) == (file["size"], file["sha256"])
    assert {p.name for p in folder.iterdir()} == {*manifest["files"], "wherry.json"}
    headers = {p.name for p in (out / "include").iterdir()}
    assert {"wherry.h", "wherry_app.h", "module.modulemap"} <= headers
    assert set(index["missing"]) == {"android", "android-x86_64"}
    for made in index["libraries"]:
        assert (out / made["path"]).stat().st_size == made["size"]


def read_manifest_of_assets(folder: Path) -> dict:
    raw = json.loads((folder / "wherry.json").read_text())
    assert raw["library"] not in raw["files"]  # its objects are in the app's library
    return raw


def test_an_ndk_is_found_where_it_is_named(monkeypatch, tmp_path):
    for name in ("ANDROID_NDK_HOME", "ANDROID_NDK_ROOT", "ANDROID_HOME", "ANDROID_SDK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    assert tools.ndk() is None
    for version in ("9.1", "27.2.12479018", "26.1"):
        folder = tmp_path / "ndk" / version / "build" / "cmake"
        folder.mkdir(parents=True)
        (folder / "android.toolchain.cmake").touch()
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path))
    assert tools.ndk() == tmp_path / "ndk" / "27.2.12479018"
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path / "ndk" / "26.1"))
    assert tools.ndk() == tmp_path / "ndk" / "26.1"
    compiler = tools.compiler_for(PLATFORMS["android"])
    assert compiler.definitions["CMAKE_TOOLCHAIN_FILE"].startswith(str(tools.ndk()))
    assert compiler.definitions["ANDROID_ABI"] == "arm64-v8a"
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))  # no NDK
    assert [tool.name for tool in tools.compiler_for(PLATFORMS["android"]).missing] == [
        "Android NDK"
    ]


def test_an_xcframework_is_written_without_a_mac(tmp_path):
    slices = {p.folder: p for p in PLATFORMS.values() if p.system == "apple"}
    xcframework.write_info(tmp_path, slices)
    info = plistlib.loads((tmp_path / "Info.plist").read_bytes())
    assert (info["CFBundlePackageType"], info["XCFrameworkFormatVersion"]) == ("XFWK", "1.0")
    found = {
        one["LibraryIdentifier"]: (one["SupportedPlatform"], one.get("SupportedPlatformVariant"))
        for one in info["AvailableLibraries"]
    }
    assert found == {
        "ios-arm64": ("ios", None),
        "ios-arm64-simulator": ("ios", "simulator"),
        "ios-arm64-maccatalyst": ("ios", "maccatalyst"),
    }
    for one in info["AvailableLibraries"]:
        assert one["SupportedArchitectures"] == ["arm64"]
        assert (one["LibraryPath"], one["HeadersPath"]) == ("libwherry.a", "Headers")


def test_other_files_are_not_written_over(tmp_path):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(UsageError, match=r"has files and is no package:\n  - mine.txt"):
        package.check_new(tmp_path)
    package.check_new(tmp_path / "new")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "android", "--target", "wasm"), "Type the command once for each"),
        (("--target", "wasm", "--cpu", "cortex-a76"), "--cpu is for apps"),
        (("--target", "android", "--quant", "q4f16_1", "--quant", "q8f16_1"), "one --quant"),
        (("demo", "--target", "android"), "Several models are called demo"),
    ],
)
def test_what_does_not_go_together(tmp_path, words, said):
    done = wherry("package", "demo", *words, "-o", str(tmp_path / "out"))
    assert done.returncode == 2 and said in done.stderr, done.stderr


LINUX = ("linux-x86_64", "linux-aarch64")
SYSROOT = "/usr/aarch64-linux-gnu"
PROGRAM = Path(__file__).parent / "peak.cc"


@pytest.fixture(scope="module")
def linux(tmp_path_factory):
    """For both Linux systems, with an emulator for the other one. Compiles the core twice."""
    out = tmp_path_factory.mktemp("linux") / "out"
    targets = [word for name in LINUX for word in ("--target", name)]
    done = wherry("package", "demo", *targets, "-o", str(out))
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.nightly
@pytest.mark.aarch64
@pytest.mark.parametrize("name", LINUX)
def test_a_program_links_a_package_and_answers(linux, name, tmp_path):
    """Static and shared; greedy tokens are equal on both systems, and peak memory is in bounds."""
    arch = name.removeprefix("linux-")
    index = json.loads((linux / package.INDEX).read_text())
    (model,) = index["models"]
    cross = "" if shutil.which(f"{arch}-linux-gnu-g++") is None else f"{arch}-linux-gnu-"
    libraries = linux / "lib" / name
    said = {}
    for kind in ("a", "so"):
        program = tmp_path / f"program-{kind}"
        command = [f"{cross}g++", "-std=c++17", "-O1", str(PROGRAM), f"-I{linux / 'include'}"]
        command += [str(libraries / f"libwherry.{kind}"), "-lpthread", "-ldl", "-o", str(program)]
        subprocess.run(command, check=True)
        emulator = ["qemu-aarch64", "-L", SYSROOT, "-E", f"LD_LIBRARY_PATH={libraries}"]
        native = ["env", f"LD_LIBRARY_PATH={libraries}"]
        runner = emulator if arch == "aarch64" else native
        words = [program, model["symbols"], linux / model["folder"], tmp_path / "packed"]
        done = subprocess.run(
            [*runner, *map(str, words)], capture_output=True, text=True, check=True, timeout=300
        )
        said[kind] = done.stdout.split()
        before, peak = map(int, done.stderr.split())  # kB
        assert 1000 * (peak - before) <= model["memory"]["weights"] + 30_000_000
        assert len(set(said[kind])) > 4
    assert said["a"] == said["so"]
    place = linux.parent / "tokens"
    if place.exists():
        assert place.read_text().split() == said["a"]
    place.write_text(" ".join(said["a"]))
    shared = next(
        made for made in index["libraries"] if made["path"].endswith(f"{name}/libwherry.so")
    )
    assert shared["size"] <= 3_000_000


@pytest.mark.nightly
def test_apple_s_libraries_need_nothing_that_is_not_there(tmp_path):
    """Compiled with zig for the device; `wherry package` checks symbols itself and would fail."""
    pytest.importorskip("ziglang")
    out = tmp_path / "out"
    done = wherry("package", "demo", "--target", "iphone", *LIMITS, "-o", str(out))
    assert done.returncode == 0, done.stderr
    library = out / xcframework.NAME / "ios-arm64" / "libwherry.a"
    found = object_files.read(library)
    assert {(o.format, o.arch, o.platform) for o in found} == {("Mach-O", "aarch64", "ios 16.0")}
    defined = frozenset().union(*(o.defined for o in found))
    assert defined >= RUNTIME and "wherry_engine_step" in defined
    # What newer systems' libc++ has is not called.
    assert not [name for name in object_files.undefined(found) if "__hash_memory" in name]
