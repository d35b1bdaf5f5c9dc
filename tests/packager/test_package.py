"""`wherry package` for apps: what is in the folder, and what is said without a compiler."""

from __future__ import annotations

import json
import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from wherry.artifact.manifest import sha256_of
from wherry.cli.group import cli
from wherry.compiler import api
from wherry.errors import UsageError
from wherry.packager import compilers, object_files, package, xcframework
from wherry.packager.check import LIBC, METAL, RUNTIME
from wherry.packager.platforms import PLATFORMS

from ..support import apple_linker
from ..support.command import wherry
from ..support.java import jdk

LIMITS = ("--max-batch", "8", "--prefill-chunk", "64")


def without_ndk(folder, *names):
    """A package for systems of Android on a machine without an NDK."""
    targets = [word for name in names for word in ("--target", name)]
    environment = {"ANDROID_NDK_HOME": "/none", "ANDROID_HOME": "/none"}
    out = folder / "out"
    return out, wherry("package", "demo", *targets, *LIMITS, "-o", str(out), **environment)


@pytest.fixture(scope="module")
def android(tmp_path_factory):
    """For phones; see the nightly test for emulators."""
    return without_ndk(tmp_path_factory.mktemp("app"), "android")


@pytest.mark.cpu
def test_without_an_ndk_it_says_what_was_written_and_what_to_type(android):
    check_objects(*android, {"android": "aarch64"})


@pytest.mark.nightly
def test_two_systems_share_their_assets(tmp_path):
    out, done = without_ndk(tmp_path, "android", "android-x86_64")
    check_objects(out, done, {"android": "aarch64", "android-x86_64": "x86_64"})
    check_assets(out, {"android", "android-x86_64"})


def test_a_missing_ndk_is_said_before_a_model_is_compiled(monkeypatch):
    """The compiler takes most of a command's time, and a person may stop it."""
    monkeypatch.setenv("ANDROID_NDK_HOME", "/none")
    monkeypatch.setenv("ANDROID_HOME", "/none")

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "ensure_artifact", stop)
    done = CliRunner().invoke(cli, ["package", "demo", "--target", "android", "-o", "/none/out"])
    assert "NDK is not installed, so android will lack its library" in done.stderr
    assert "sdkmanager" in done.stderr


def check_objects(out, done, archs):
    assert done.returncode == 5 and "Traceback" not in done.stderr
    assert f"{out} is written, but libraries are missing in it" in done.stderr
    for name, arch in archs.items():
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
def test_assets_are_what_the_manifest_says(android):
    check_assets(android[0], {"android"})


@pytest.mark.cpu
def test_the_kotlin_library_lies_beside_them(android):
    """A module that takes native libraries and assets of the package, without the C++."""
    folder = android[0] / "android"
    build = (folder / "build.gradle.kts").read_text()
    taken = re.findall(r'(?:jniLibs|assets)\.srcDir\("(.*?)"\)', build)
    assert [(folder / path).resolve().name for path in taken] == ["jniLibs", "assets"]
    assert (folder / taken[1] / "demo" / "wherry.json").is_file()
    assert (folder / "src/main/kotlin/dev/wherry/MLCEngine.kt").is_file()
    assert (folder / "src/android/kotlin/dev/wherry/android/Models.kt").is_file()
    for named in ("consumer-rules.pro", "src/main/AndroidManifest.xml", "settings.gradle.kts"):
        assert (folder / named).is_file()
    assert not list(folder.rglob("*.cc"))


def check_assets(out, missing):
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
    assert set(index["missing"]) == missing
    for library in index["libraries"]:
        assert (out / library["path"]).stat().st_size == library["size"]


def read_manifest_of_assets(folder: Path) -> dict:
    raw = json.loads((folder / "wherry.json").read_text())
    assert raw["library"] not in raw["files"]  # its objects are in the app's library
    return raw


def test_an_ndk_is_used_where_it_is_named(monkeypatch, tmp_path):
    for name in ("ANDROID_NDK_HOME", "ANDROID_NDK_ROOT", "ANDROID_HOME", "ANDROID_SDK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    assert compilers.ndk() is None
    for version in ("9.1", "27.2.12479018", "26.1"):
        folder = tmp_path / "ndk" / version / "build" / "cmake"
        folder.mkdir(parents=True)
        (folder / "android.toolchain.cmake").touch()
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path))
    assert compilers.ndk() == tmp_path / "ndk" / "27.2.12479018"
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path / "ndk" / "26.1"))
    assert compilers.ndk() == tmp_path / "ndk" / "26.1"
    compiler = compilers.compiler_for(PLATFORMS["android"])
    assert compiler.definitions["CMAKE_TOOLCHAIN_FILE"].startswith(str(compilers.ndk()))
    assert compiler.definitions["ANDROID_ABI"] == "arm64-v8a"
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))  # no NDK
    assert [tool.name for tool in compilers.compiler_for(PLATFORMS["android"]).missing] == [
        "Android NDK"
    ]


def test_an_xcframework_is_written_without_a_mac(tmp_path):
    slices = {p.folder: p for p in PLATFORMS.values() if p.system == "apple"}
    xcframework.write_info(tmp_path, slices)
    info = plistlib.loads((tmp_path / "Info.plist").read_bytes())
    assert (info["CFBundlePackageType"], info["XCFrameworkFormatVersion"]) == ("XFWK", "1.0")
    written = {
        one["LibraryIdentifier"]: (one["SupportedPlatform"], one.get("SupportedPlatformVariant"))
        for one in info["AvailableLibraries"]
    }
    assert written == {
        "ios-arm64": ("ios", None),
        "ios-arm64-simulator": ("ios", "simulator"),
        "ios-arm64-maccatalyst": ("ios", "maccatalyst"),
    }
    for one in info["AvailableLibraries"]:
        assert one["SupportedArchitectures"] == ["arm64"]
        assert (one["LibraryPath"], one["HeadersPath"]) == ("libwherry.a", "Headers")


def test_other_files_are_not_written_over(tmp_path):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(UsageError, match=r"has files and is not a package:\n  - mine.txt"):
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
    done = CliRunner().invoke(cli, ["package", "demo", *words, "-o", str(tmp_path / "out")])
    assert isinstance(done.exception, UsageError) and said in str(done.exception)


LINUX = ("linux-x86_64", "linux-aarch64")
SYSROOT = "/usr/aarch64-linux-gnu"
HERE = Path(__file__).parent
# Bytes of the shared library; on Arm with the code of three levels. Images took 82,000 of them.
LARGEST = {"aarch64": 3_900_000, "x86_64": 3_600_000}
REQUEST = {
    "messages": [{"role": "user", "content": "Tell me a story about a fox. 🦊"}],
    "temperature": 0,
    "max_tokens": 24,
}


@pytest.fixture(scope="module")
def linux(tmp_path_factory):
    """For both Linux systems, with an emulator for the other one. Compiles the core twice."""
    out = tmp_path_factory.mktemp("linux") / "out"
    targets = [word for name in LINUX for word in ("--target", name)]
    done = wherry("package", "demo", *targets, "-o", str(out), timeout=1800)
    assert done.returncode == 0, done.stderr
    return out


class Machine:
    """A system of a package: what compiles for it, and what runs that here."""

    def __init__(self, name, package_):
        self.arch = name.removeprefix("linux-")
        self.libraries = package_ / "lib" / name
        self._include = package_ / "include"
        cross = shutil.which(f"{self.arch}-linux-gnu-g++")
        self._compiler = cross or "g++"

    def compiled(self, source, out, *words):
        command = [self._compiler, "-std=c++17", "-O1", HERE / source, f"-I{self._include}"]
        command += [*words, "-lpthread", "-ldl", "-o", out]
        subprocess.run([str(word) for word in command], check=True)
        return out

    def run(self, *words, cpu="max"):
        path = f"LD_LIBRARY_PATH={self.libraries}"
        emulated = ["qemu-aarch64", "-cpu", cpu, "-L", SYSROOT, "-E", path]
        runner = emulated if self.arch == "aarch64" else ["env", path]
        done = subprocess.run(
            [*runner, *map(str, words)], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done


def text_of(answer):
    """The text of an answer, which is more than one word again and again."""
    text = json.loads(answer.splitlines()[0])["choices"][0]["message"]["content"]
    assert len(set(text.split())) > 4
    return text


@pytest.mark.nightly
@pytest.mark.aarch64
def test_programs_link_a_package_and_answer(linux, tmp_path):
    """Static, shared and for Java; alike on both systems, with memory and size in bounds."""
    index = json.loads((linux / package.INDEX).read_text())
    (model,) = index["models"]
    folder, request = linux / model["folder"], json.dumps(REQUEST)
    sizes = {entry["path"]: entry["size"] for entry in index["libraries"]}
    texts = []
    for name in LINUX:
        machine, packed = Machine(name, linux), tmp_path / f"{name}-packed"
        for kind in ("a", "so"):
            library = machine.libraries / f"libwherry.{kind}"
            chat = machine.compiled("talk.cc", tmp_path / f"{name}-{kind}", library)
            done = machine.run(chat, folder, packed, request)
            texts.append(text_of(done.stdout))
            before, peak = map(int, done.stderr.split())  # kB
            assert 1000 * (peak - before) <= model["memory"]["weights"] + 30_000_000
        java = [f"-I{jdk() / 'include'}", f"-I{jdk() / 'include' / 'linux'}"]
        bridge = machine.compiled("bridge.cc", tmp_path / f"{name}-bridge", *java)
        done = machine.run(bridge, machine.libraries / "libwherry.so", folder, request)
        texts.append(text_of(done.stdout))
        refusal, left = done.stderr.splitlines()
        assert refusal.startswith("-2: /none is no compiled model")
        assert left == "left: 0 0 0"  # references, frames of them, threads
        assert sizes[f"lib/{name}/libwherry.so"] <= LARGEST[machine.arch]
    assert len(set(texts)) == 1


# CPU that is emulated -> code of the package that suits it.
LEVELS = {
    "cortex-a53": "cpu:armv8-a",
    "cortex-a72": "cpu:armv8-a",
    "cortex-a76": "cpu:armv8-a+dotprod",
    "max": "cpu:armv8-a+dotprod+i8mm",
}


@pytest.mark.nightly
@pytest.mark.aarch64
def test_each_cpu_gets_the_highest_level_that_it_has(linux, tmp_path):
    index = json.loads((linux / package.INDEX).read_text())
    (model,) = index["models"]
    assert [c["name"] for c in model["codes"]["linux-aarch64"]] == sorted(
        set(LEVELS.values()), reverse=True
    )
    machine = Machine("linux-aarch64", linux)
    chat = machine.compiled("talk.cc", tmp_path / "talk", machine.libraries / "libwherry.a")
    texts = set()
    for cpu, code in LEVELS.items():
        # An older CPU ends by an illegal instruction in code for a newer one.
        done = machine.run(chat, linux / model["folder"], tmp_path, json.dumps(REQUEST), cpu=cpu)
        texts.add(text_of(done.stdout))
        stats = json.loads(done.stdout.splitlines()[1])
        assert (stats["device"], stats["code"]) == ("cpu", code)
        missing = {"cpu:armv8-a+dotprod+i8mm": "i8mm", "cpu:armv8-a+dotprod": "asimddp"}
        passed = list(missing)[: sorted(set(LEVELS.values()), reverse=True).index(code)]
        assert [p["code"] for p in stats["passed_over"]] == passed
        for over in stats["passed_over"]:
            assert missing[over["code"]] in over["reason"]
    assert len(texts) == 1


@pytest.mark.nightly
def test_apple_s_libraries_need_nothing_that_is_not_there(tmp_path):
    """Compiled with zig for the device, with the plugin for Metal, and linked to a program.

    `wherry package` checks symbols itself and would fail.
    """
    out = tmp_path / "out"
    words = ("package", "demo", "--target", "iphone:metal", *LIMITS, "-o", str(out))
    done = wherry(*words, timeout=1800)
    assert done.returncode == 0, done.stderr
    library = out / xcframework.NAME / "ios-arm64" / "libwherry.a"
    files = object_files.read(library)
    assert {(o.format, o.arch, o.platform) for o in files} == {("Mach-O", "aarch64", "ios 16.0")}
    defined = frozenset().union(*(o.defined for o in files))
    assert defined >= RUNTIME and "wherry_engine_step" in defined
    # What newer systems' libc++ has is not called.
    assert not [name for name in object_files.undefined(files) if "__hash_memory" in name]
    main, zig = tmp_path / "main.o", compilers.zig_folder() / "zig"
    source = tmp_path / "main.c"
    body = "int main(void) { return wherry_app_abi_version(); }"
    source.write_text(f"int wherry_app_abi_version(void);\n{body}\n")
    command = [zig, "cc", "-target", "aarch64-ios.16.0", "-c", source, "-o", main]
    subprocess.run([str(word) for word in command], check=True)
    assert apple_linker.linked(library, main, tmp_path / "app") >= METAL
