"""The Kotlin library on this machine's Java, above a stand-in for texts.

`stand_in_app.cc` is wherry_app.h without tokenizer and templates, so tokens are compared.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tvm
import tvm_ffi

import wherry

from .conftest import PROMPTS, ROOT, run

pytestmark = [pytest.mark.cpu, pytest.mark.mobile]


@pytest.fixture(scope="module")
def checks(jars, classes, bridge, demo):
    """Run cases of kotlin/Checks.kt in one virtual machine; what they found."""
    ffi = Path(tvm_ffi.__file__).parent / "lib" / "libtvm_ffi.so"
    runtime = Path(tvm.__file__).parent / "lib" / "libtvm_runtime.so"
    libraries = f"-Dwherry.libraries={ffi}:{runtime}:{bridge}"

    def found(*cases: str, options: str = "{}") -> dict:
        java = ["java", "-Xcheck:jni", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", libraries]
        said = run([*java, "-cp", f"{classes}:{jars}", "ChecksKt", demo, options, *cases])
        assert "FATAL ERROR in native method" not in said
        # -Xcheck:jni warns of exceptions that nobody asked for, and of references that pile up.
        assert "WARNING in native method" not in said, said
        return json.loads(said.splitlines()[-1])

    return found


@pytest.fixture(scope="module")
def said(checks):
    return checks("answers", "together", "cancelling", "errors", "closing", "java")


def test_tokens_are_python_s(said, greedy):
    expected = " ".join(map(str, greedy(0)))
    answers = {name: text.strip() for name, text in said["answers"].items()}
    assert answers.pop("finish") == "length" and int(answers.pop("pieces")) == len(greedy(0))
    assert answers == dict.fromkeys(("text", "streamed", "chat", "chat_streamed"), expected)
    assert said["java"]["text"] == said["java"]["pieces"].strip() == expected


def test_sixteen_at_once_are_as_each_alone(said):
    alone, together = said["together"]
    assert alone == together
    assert len(alone) == PROMPTS and len(set(alone)) == PROMPTS


def test_cancelling_frees_pages(said):
    found = said["cancelling"]
    assert found["least"] < found["before"] == found["after"]
    assert found["own"] == "own"
    assert said["java"]["cancelled"] is True


def test_errors_have_types(said):
    errors = said["errors"]
    wanted = {
        "no_folder": "ModelNotFoundException: ",
        "no_memory": "NotEnoughMemoryException: .* needs [0-9]+ MB of memory, [0-9]+ MB are free",
        "bad_json": "InvalidArgumentException: A request is one JSON object",
        "refused": "RequestException: refused",
        "cancelled": "CancellationException: own",
        "own": "IllegalStateException: own",
        "closed_while": "EngineClosedException: ",
        "closed": "EngineClosedException: ",
        "closed_stats": "EngineClosedException: ",
    }
    assert set(errors) == set(wanted)
    for name, pattern in wanted.items():
        assert re.match(pattern, errors[name]), (name, errors[name])
    assert said["closing"] == "EngineClosedException"
    assert said["java"]["refused"] == "invalid"


def test_the_version_is_python_s():
    gradle = (ROOT / "mobile" / "android" / "build.gradle.kts").read_text()
    assert f'version = "{wherry.__version__}"' in gradle


@pytest.mark.nightly
def test_a_thousand_loads_leak_nothing(checks):
    """Of memory, threads and open files, from the first hundred to the last."""
    sizes = checks("leaks:1000")["leaks:1000"]
    (first, *_), last = sizes[1:], sizes[-1]
    assert last[0] - first[0] < 24_000, sizes  # kB
    assert last[1] <= first[1] and last[2] <= first[2], sizes
