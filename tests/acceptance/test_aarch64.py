"""64-bit Arm: a model compiled here, linked here, and run under an emulator by our own program."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from wherry.compiler.api import Limits, ensure_artifact
from wherry.machine.cpu import cpu_features

from ..support import tiny_models
from ..support.aarch64 import lacking, require_tools

pytestmark = pytest.mark.aarch64

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "aarch64"
SYSROOT = "/usr/aarch64-linux-gnu"
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
NEW_TOKENS = 64
# Newest tag first; pip takes only what a wheel's name says.
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_24_aarch64", "manylinux_2_17_aarch64")


@pytest.fixture(scope="module", autouse=True)
def tools():
    """The cross compiler and the emulator."""
    require_tools()


@pytest.fixture(scope="module")
def runtime(tools, pytestconfig):
    """The folder that PyPI's aarch64 wheels of TVM's run time are unpacked in."""
    names = [f"{name}=={version(name)}" for name in ("apache-tvm", "apache-tvm-ffi")]
    folder = pytestconfig.cache.mkdir("-".join(["aarch64", *(n.split("==")[1] for n in names)]))
    if not (folder / "tvm" / "lib" / "libtvm_runtime.so").is_file():
        for name in names:
            _download(name, folder)
    return folder


def _download(name: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--no-deps", name]
    command += ["--dest", str(folder / "wheels")]
    command += [word for p in PLATFORMS for word in ("--platform", p)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lacking(f"pip cannot download the aarch64 wheel of {name}:\n{done.stderr}")
    for wheel in (folder / "wheels").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            members = [m for m in archive.namelist() if Path(m).stem in _LIBRARIES]
            archive.extractall(folder, members)
        wheel.unlink()


_LIBRARIES = ("libtvm_ffi", "libtvm_runtime")


@pytest.fixture(scope="module")
def program(runtime):
    """The core and wherry_generate, cross-compiled as the README of a device would say."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    library = runtime / "tvm_ffi" / "lib" / "libtvm_ffi.so"
    where = (f"-DPython_EXECUTABLE={sys.executable}", f"-DWHERRY_TVM_FFI_LIBRARY={library}")
    for command in (
        ["cmake", "--preset", "aarch64", "-DCMAKE_UNITY_BUILD=ON", *where],
        ["cmake", "--build", "--preset", "aarch64", "-j2", "--target", "wherry_generate"],
    ):
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return BUILD / "wherry_generate"


@pytest.fixture(scope="module")
def generate(program, runtime):
    """Run wherry_generate under the emulator."""
    libraries = f"{runtime / 'tvm' / 'lib'}:{runtime / 'tvm_ffi' / 'lib'}"
    emulator = ["qemu-aarch64", "-L", SYSROOT, "-E", f"LD_LIBRARY_PATH={libraries}", str(program)]

    def run(*arguments) -> subprocess.CompletedProcess[str]:
        command = [*emulator, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    tiny_models.save(folder, "llama")
    return folder


@pytest.fixture(scope="module")
def compiled(model):
    def compile_for(target: str, quant: str = "q4f16_1", **options: str) -> Path:
        limits = Limits(max_batch=8, prefill_chunk=64)
        return ensure_artifact(str(model), quant=quant, target=target, limits=limits, **options)

    return compile_for


def greedy(folder: Path) -> list[int]:
    """The same tokens on this machine."""
    runner, tokens, new = tiny_models.Runner(folder), [], PROMPT
    for _ in range(NEW_TOKENS):
        tokens.append(int(np.argmax(runner.step({0: new})[0][-1])))
        new = tokens[-1:]
    return tokens


@pytest.mark.parametrize(
    ("cpu", "instruction"),
    [
        ("cortex-a76", "sdot"),
        ("cortex-a72", "smlal"),
        pytest.param("armv8-a+dotprod+i8mm", "smmla", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.by_day("a76")
@pytest.mark.nightly
def test_a_library_is_linked_for_the_device_and_uses_its_dot_product(compiled, cpu, instruction):
    folder = compiled(f"cpu:{cpu}")
    header = (folder / "model.so").read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == 183  # AArch64
    code = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-d", str(folder / "model.so")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert instruction in code


@pytest.mark.parametrize(
    ("cpu", "quant", "options"),
    [
        ("cortex-a76", "q4f16_1", {}),
        pytest.param("cortex-a76", "q8f16_1", {}, marks=pytest.mark.nightly),
        pytest.param(
            "cortex-a76",
            "q8f16_1",
            {"kv_dtype": "int8", "activations": "float"},
            marks=pytest.mark.nightly,
        ),
        pytest.param("armv8-a+dotprod+i8mm", "q4f16_1", {}, marks=pytest.mark.nightly),
        pytest.param("armv8-a+dotprod+i8mm", "q8f16_1", {}, marks=pytest.mark.nightly),
        pytest.param("cortex-a72", "q4f16_1", {}, marks=pytest.mark.nightly),
        pytest.param("cortex-a72", "q8f16_1", {}, marks=pytest.mark.nightly),
    ],
)
def test_tokens_are_those_of_this_machine(compiled, generate, cpu, quant, options):
    if not {"avx2", "fma"} <= cpu_features():
        lacking("this CPU has neither AVX2 nor FMA: its integer kernels round otherwise")
    folder = compiled(f"cpu:{cpu}", quant, **options)
    done = generate("--max-tokens", NEW_TOKENS, folder / "model.so", folder, *PROMPT)
    assert done.returncode == 0, done.stderr
    tokens = [int(word) for word in done.stdout.split()]
    assert tokens == greedy(compiled("cpu", quant, **options))
    assert len(set(tokens)) > 4
    limits = ("--threads", 2, "--max-tokens", NEW_TOKENS)
    assert generate(*limits, folder / "model.so", folder, *PROMPT).stdout == done.stdout


def test_the_program_says_what_is_wrong(generate, tmp_path):
    cases = {
        (): "usage: wherry_generate",
        ("a", "b", "x"): '"x" is not a number',
        ("--colour", "red", "a", "b", "1"): "unknown option --colour",
        (tmp_path / "none.so", tmp_path, 1): "no compiled library",
        ("--runtime", tmp_path / "none.so", "a", "b", 1): "run time cannot be loaded",
    }
    for arguments, said in cases.items():
        done = generate(*arguments)
        assert done.returncode == 1 and said in done.stderr, done.stderr
        assert done.stdout == ""
