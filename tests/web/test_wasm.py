"""The core in WebAssembly, in Node: this machine's tokens, and errors that are errors.

And the same from Python in WebAssembly (Pyodide), here because both take the same compiled models.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.errors import ToolchainError
from wherry.runtime import MLCEngine
from wherry.runtime.core.interface import SamplingParams
from wherry.targets.toolchains import web as web_toolchain

from ..app.vector_models import compiled
from .conftest import FEW, LIMITS, ROOT, TOKENS

pytestmark = pytest.mark.cpu
HERE = Path(__file__).parent
MOST_BYTES = 1_500_000  # of model.wasm and the core's JavaScript, gzip
MOST_WHEEL_BYTES = 900_000  # a third of them for grammars
TEXTS = ["a b c", "some words"]
PARIS = "Paris."


@pytest.fixture(scope="module")
def folder(tools):
    return ensure_artifact("demo", target="wasm", limits=LIMITS)


@pytest.fixture(scope="module")
def report(core_js, folder, given):
    """What node.mjs says of the demo model."""
    done = subprocess.run(
        ["node", str(HERE / "node.mjs"), str(core_js / "core.js"), str(folder)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tokens_are_those_of_this_machine(report, native, prompts):
    greedy = SamplingParams(temperature=0, max_tokens=TOKENS)
    expected = native([(prompt, greedy) for prompt in prompts])
    assert [one["tokens"] for one in report["together"]] == expected
    assert len({tuple(tokens) for tokens in expected}) == len(prompts)
    drawn = SamplingParams(temperature=0.8, top_p=0.9, seed=5, max_tokens=FEW)
    hot = SamplingParams(temperature=1.1, seed=6, max_tokens=FEW)
    biased = SamplingParams(temperature=0, max_tokens=8, bias={7: 0.0})
    requests = zip(prompts, (biased, drawn, hot), strict=False)
    assert [one["tokens"] for one in report["biased"]] == native(list(requests))
    assert report["biased"][2]["prompt"] == prompts[2][1:]


def test_requests_beside_each_other_are_as_alone(report):
    batched = [one["tokens"][:FEW] for one in report["together"]]
    assert batched == [one["tokens"] for one in report["solo"]]
    assert report["again"]["tokens"] == report["solo"][0]["tokens"]
    assert report["statsTogether"]["running"] == 0


def test_a_second_turn_finds_the_first(report, prompts):
    assert report["second"]["tokens"] == report["secondAlone"]["tokens"]
    assert report["secondAlone"]["cached"] == 0
    computed = len(prompts[0]) + FEW - 1  # of the first turn, whose last token was never computed
    assert report["second"]["cached"] >= computed // 16 * 16 > 0


def test_what_is_aborted_frees_its_pages(report):
    assert [one["finish"] for one in report["aborted"]] == ["abort", "length"]
    assert len(report["aborted"][0]["tokens"]) < FEW
    assert report["aborted"][1]["tokens"] == report["solo"][1]["tokens"]
    assert report["abortedInStep"][-1] == "abort"
    assert report["pages"]["after"] == report["pages"]["before"]


def test_errors_are_errors_and_the_core_goes_on(report):
    errors = report["errors"]
    assert errors["token"].startswith("invalid_argument: token 0 of the prompt is 1048576")
    assert errors["params"].startswith("invalid_argument:") and "top_p" in errors["params"]
    assert errors["empty"] == "invalid_argument: the prompt has no tokens"
    assert errors["unknown"].startswith("not_found:")
    masked = report["masked"]
    assert [one["tokens"] for one in masked[:2]] == [[5, 9, 3, 12]] * 2
    assert [one["finish"] for one in masked] == ["stop", "stop", "error"]
    assert "no words left" in masked[2]["error"]
    assert report["released"] == 3
    assert report["destroyed"] == "aborted"


def test_what_is_damaged_is_refused_with_words(report):
    refused = report["refused"]
    assert "ended after 100001 bytes" in refused["short"]
    assert refused["wasm"].startswith("CoreError incompatible: model.wasm cannot be used")
    assert refused["index"].startswith("CoreError incompatible: the weights do not fit")
    assert refused["memory"].startswith("CoreError out_of_memory: no memory for a tensor of 8.5")
    assert refused["config"].startswith("CoreError invalid_argument:")


def test_draft_tokens_change_no_token(report):
    assert report["drafted"]["tokens"] == report["together"][0]["tokens"]


def test_progress_is_reported_to_the_end(report, folder):
    weights = [event for event in report["progress"] if event["phase"] == "weights"]
    assert weights[-1]["done"] == weights[-1]["total"] > 0
    assert [event["done"] for event in weights] == sorted(event["done"] for event in weights)
    assert report["metadata"]["vocab_size"] > 0


def test_the_folder_is_what_the_package_loads(folder, core_js):
    manifest = read_manifest(folder)
    assert manifest.library == "model.wasm" and manifest.target["objects"]["format"] == "wasm"
    library = (folder / "model.wasm").read_bytes()
    script = b"".join(path.read_bytes() for path in core_js.glob("*.js"))
    size = len(gzip.compress(library, 9)) + len(gzip.compress(script, 9))
    assert size < MOST_BYTES, size


def test_without_the_core_it_says_what_to_type(monkeypatch, tmp_path):
    monkeypatch.setenv("WHERRY_WEB_CORE", str(tmp_path / "none.o"))
    with pytest.raises(
        ToolchainError, match=r"wherry-core\.o\. Type: apt-get install .*emscripten"
    ):
        ensure_artifact("demo", target="wasm", limits=LIMITS)
    monkeypatch.undo()
    monkeypatch.setattr(web_toolchain.shutil, "which", lambda name: None)
    monkeypatch.setattr(web_toolchain.extras, "zig", lambda: None)
    with pytest.raises(ToolchainError, match=r"wasm-ld\. Type: pip install 'wherry\[browser\]'"):
        ensure_artifact("demo", target="wasm", limits=LIMITS, out=tmp_path / "out")


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    """A folder of a tiny embedder for WebAssembly, and for this machine's CPU."""
    place = tmp_path_factory.mktemp("embedder")
    return [compiled("embedder", place, target) for target in ("wasm", "cpu:x86-64-v2")]


@pytest.fixture(scope="module")
def report_of_python(wheel, folder, embedder, given):
    """What in_pyodide.py says of the demo model and of an embedder."""
    pyodide = ROOT / "web" / "node_modules" / "pyodide"
    models = [f"demo={folder}", f"embedder={embedder[0]}"]
    done = subprocess.run(
        ["node", HERE / "pyodide.mjs", pyodide, wheel, HERE / "in_pyodide.py", *models],
        input=json.dumps(given | {"texts": TEXTS}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def test_the_wheel_is_python_alone_and_small(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size < MOST_WHEEL_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    assert "wherry/runtime/browser/engine.js" in names
    assert not [name for name in names if name.endswith((".so", ".o", ".wasm"))]


def test_python_gets_the_tokens_of_this_machine(report_of_python, native, prompts):
    tokenizer = Tokenizer.from_file(str(ROOT / "src" / "wherry" / "demo" / "tokenizer.json"))
    greedy = SamplingParams(temperature=0, max_tokens=TOKENS)
    expected = [tokenizer.decode(ids) for ids in native([(prompt, greedy) for prompt in prompts])]
    assert report_of_python["together"] == expected
    assert "".join(report_of_python["streamed"]) == expected[1]
    assert len(report_of_python["streamed"]) > TOKENS // 2


def test_python_gets_the_shapes_of_its_other_engine(report_of_python):
    chat, pieces = report_of_python["chat"], report_of_python["pieces"]
    assert chat["choices"][0]["message"]["content"] == PARIS
    assert chat["usage"]["completion_tokens_details"]["reasoning_tokens"] == 0
    assert chat["timings"]["predicted_per_token_ms"] > 0
    assert len(chat["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 2
    assert report_of_python["dumped"]["object"] == "text_completion"
    assert len(report_of_python["dumped"]["choices"][0]["logprobs"]["tokens"]) == TOKENS
    *pieces, last = pieces
    assert "".join(p["choices"][0]["delta"].get("content") or "" for p in pieces) == PARIS
    assert last["choices"] == [] and last["usage"]["completion_tokens"] > 0
    assert report_of_python["phases"] == ["compile", "weights"]


def test_python_gets_the_embeddings_of_its_other_engine(report_of_python, embedder):
    with MLCEngine(embedder[1], threads=1) as engine:
        there = engine.embeddings.create(input=TEXTS, dimensions=8).model_dump()
    assert report_of_python["embeddings"] | {"model": there["model"]} == there
    kind, words, param = report_of_python["dimensions"]
    assert (kind, param) == ("RequestError", "dimensions"), words


def test_what_ends_in_python_frees_its_pages(report_of_python):
    assert report_of_python["cancelled"]
    assert report_of_python["ended"] == [3, 0, 0]  # running before, running after, pages held


def test_errors_in_python_are_those_of_its_other_engine(report_of_python):
    kind, words, param = report_of_python["wrong"]
    assert (kind, param) == ("RequestError", "temperature"), words
    assert report_of_python["none"][0] == "ArtifactError"
    assert "unknown options pack_dir" in report_of_python["option"]
    # Node may have what waiting takes, or not.
    assert report_of_python["sync"] == "waited" or "AsyncMLCEngine" in report_of_python["sync"]


def test_python_imports_nothing_of_servers(report_of_python):
    deep = [name.split(".") for name in report_of_python["modules"] if name.count(".") >= 2]
    rooms = {"answers", "browser", "core", "errors", "shaped", "vector_answers"}
    assert {name[2] for name in deep} == rooms
