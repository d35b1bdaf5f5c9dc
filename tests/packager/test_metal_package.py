"""A package with code for Apple's GPUs, built for this machine and loaded on an emulated Metal.

The library is built from the sources and by the steps that make an iPhone's.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from wherry.compiler import choices
from wherry.compiler.api import Limits, ensure_artifact
from wherry.packager import compilers, package
from wherry.packager.platforms import PLATFORMS
from wherry.targets import hosts
from wherry.targets.target import find

from ..support import fake_metal

pytestmark = [pytest.mark.nightly, pytest.mark.cpu]
HERE = Path(__file__).parent
THERE = replace(PLATFORMS[f"linux-{platform.machine()}"], gpus={"metal": "metal"}, cpu="cpu")
REQUEST = {
    "messages": [{"role": "user", "content": "Tell me a story about a fox."}],
    "temperature": 0,
    "max_tokens": 16,
}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The demo for CPUs and for Metal, in float32. Compiles the core."""
    fake = fake_metal.library()

    def requirement(text, host):
        if text != "metal":
            return find(text, host)
        return replace(find(text), hosts=(THERE.host,)).on(hosts.find(host))

    def compiler_for(one):
        compiler = compilers.compiler_for(one)
        # It comes before what needs it, and some linkers leave out what nothing before it needs.
        linked = f"-Wl,--no-as-needed {fake} -lobjc"
        flags = dict.fromkeys(("CMAKE_SHARED_LINKER_FLAGS", "CMAKE_EXE_LINKER_FLAGS"), linked)
        return replace(compiler, definitions={**compiler.definitions, **flags})

    out = tmp_path_factory.mktemp("metal") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "find_target", requirement)
        patch.setattr(package, "compiler_for", compiler_for)
        compiled = {
            device: ensure_artifact(
                "demo",
                target=THERE.gpus.get(device, THERE.cpu),
                host=THERE.host,
                quant="q0f32",
                kv_dtype="float32",
                limits=Limits(context=256, max_batch=2, prefill_chunk=32),
            )
            for device in ("cpu", "metal")
        }
        written = package.write_package(out, {"demo": {THERE.name: compiled}}, [THERE])
    assert not written.missing
    return out


@pytest.fixture(scope="module")
def chat(packed, tmp_path_factory):
    """Load the package in a program, and let it answer: (text, statistics)."""
    folder = tmp_path_factory.mktemp("talk")
    library = packed / "lib" / THERE.name / "libwherry.so"
    words = ["g++", "-std=c++17", HERE / "talk.cc", f"-I{packed / 'include'}", library]
    words += ["-lpthread", f"-Wl,-rpath,{library.parent}", "-o", folder / "talk"]
    # Of Objective-C's run time and what it needs in turn.
    words += [fake_metal.library(), "-Wl,--allow-shlib-undefined"]
    subprocess.run([str(word) for word in words], check=True)

    def run(**environment):
        report = folder / "broken"
        own = {**fake_metal.environment(), "WHERRY_FAKE_METAL_REPORT": str(report), **environment}
        command = [folder / "talk", packed / "assets" / "demo", folder, json.dumps(REQUEST)]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, env=os.environ | own
        )
        assert done.returncode == 0, done.stderr
        assert report.read_text() == ""
        answer, statistics = map(json.loads, done.stdout.splitlines())
        return answer["choices"][0]["message"]["content"], statistics

    return run


def test_a_load_takes_the_gpu_and_else_the_cpu(chat):
    text, statistics = chat()
    assert (statistics["device"], statistics["passed_over"]) == ("metal", [])
    again, statistics = chat(WHERRY_FAKE_METAL_FAMILY="1006")  # A13
    assert statistics["device"] == "cpu" and again == text and len(set(text.split())) > 4
    (passed,) = statistics["passed_over"]
    assert passed["code"] == "metal" and "uses SIMD groups" in passed["reason"]
