"""What tests of the core in pages share: its tools, its TypeScript, and this machine's answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import Limits, ensure_artifact
from wherry.runtime.core.interface import Finish, SamplingParams
from wherry.runtime.core.library import open_core, open_runtime
from wherry.runtime.core.native import NativeCore

from ..support.web import missing, require_core, require_node
from . import browser, package

ROOT = Path(__file__).parents[2]
TOKENS, FEW = 64, 16
LIMITS = Limits(context=256, max_batch=8, prefill_chunk=64)
ENGINE = {"max_batch": 4, "prefill_chunk": 48, "kv_tokens": 1024}
TEXTS = (  # of lengths on both sides of a page and of a step's rows
    "Tell me a story about a fox.",
    "Once upon a time there was a little girl who lived by the sea, and",
    "What is two plus three? Say it in one word, and then tell me why you think so.",
    "The old man walked down to the river every morning. He had a small boat and a big dog. "
    "One day the dog did not want to get out of the boat. The old man said to the dog: come, "
    "we have to go home now, it is late. But the dog only",
)


@pytest.fixture(scope="session")
def tools():
    """Node, the core for pages and its linker."""
    require_core()
    require_node()


@pytest.fixture(scope="session")
def chromium():
    """The browser's path."""
    if browser.CHROMIUM is None:
        missing("no Chromium: apt-get install chromium")
    return browser.CHROMIUM


@pytest.fixture(scope="session")
def compiled():
    """web/build: the package and its tests as JavaScript."""
    package.need_packages()
    return package.compiled()


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """The page, bundled where Wherry looks for it."""
    package.need_packages()
    out = tmp_path_factory.mktemp("page")
    package.run("node", "scripts/bundle_page.js", str(out))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHERRY_WEB_PAGE", str(out))
        yield out


@pytest.fixture(scope="session")
def prompts():
    """Tokens of four requests to the demo model."""
    tokenizer = Tokenizer.from_file(str(ROOT / "src" / "wherry" / "demo" / "tokenizer.json"))
    return [tokenizer.encode(text).ids for text in TEXTS]


@pytest.fixture(scope="session")
def given(prompts):
    """What the scenarios are given."""
    return {"prompts": prompts, "tokens": TOKENS, "few": FEW, "engine": ENGINE}


@pytest.fixture(scope="session")
def native():
    """This machine's core on the demo model in float32: a function of requests, all in one batch.

    The CPU is the least that kernels are written for, which computes as WebAssembly does: four
    lanes, no fused multiply-add.
    """

    def run(
        requests: list[tuple[list[int], SamplingParams]],
        quant: str = "q4f16_1",
        *,
        logprobs: bool = False,  # of all tokens, the prompt's too, in the place of the tokens
    ):
        folder = ensure_artifact(
            "demo",
            target="cpu:x86-64-v2",
            quant=quant,
            kv_dtype="float32",
            activations="float",
            limits=LIMITS,
        )
        open_runtime("cpu")
        library = folder / read_manifest(folder).library
        core = NativeCore(open_core(), library, folder, "cpu", {"threads": 1}, ENGINE)
        try:
            for i, (prompt, params) in enumerate(requests):
                core.add(i, prompt, params)
            core.start()
            outputs, left = [[] for _ in requests], len(requests)
            while left:
                for event in core.wait_events(60_000):
                    assert event.finish != Finish.ERROR, event
                    if event.token >= 0 and (logprobs or not event.prompt):
                        outputs[event.id].append(event.logprob if logprobs else event.token)
                    left -= event.finish != Finish.RUNNING
            return outputs
        finally:
            core.close()

    return run


@pytest.fixture(scope="session")
def wheel(tools, tmp_path_factory):
    """Python's wheel for browsers, made as `make pyodide` makes it."""
    if not (ROOT / "web" / "node_modules").is_dir():
        missing("no packages: npm ci --prefix web")
    out = tmp_path_factory.mktemp("wheel")
    bundle = ["node", str(ROOT / "web" / "scripts" / "bundle_python.js")]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    for command in (bundle, build):
        done = subprocess.run(
            command, cwd=ROOT / "web" / "python", capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
    (wheel_file,) = out.glob("*.whl")
    return wheel_file


@pytest.fixture(scope="session")
def core_js(tools, compiled):
    """The folder of web/src/core as JavaScript."""
    return compiled / "src" / "core"
