"""What `--target webgpu:web-llm` makes, in @mlc-ai/web-llm as it comes: the CPU's tokens."""

from __future__ import annotations

import json
import subprocess

import pytest
from tokenizers import Tokenizer

from wherry.compiler.api import ensure_artifact
from wherry.runtime.core.interface import SamplingParams
from wherry.targets.toolchains import web as web_toolchain

from .browser import CHROMIUM, answer_of
from .conftest import LIMITS, ROOT, missing
from .package import WEB, run, tool

pytestmark = [pytest.mark.browser, pytest.mark.nightly]  # builds a run time, and needs the package
SECONDS = 540
QUANT = "q4f32_1"  # SwiftShader has no shader-f16
TOKENS = 24


@pytest.fixture(scope="module")
def web_llm_core(tools):
    """The object that models for WebLLM are linked to."""
    core = web_toolchain.find_core()
    assert core is not None
    done = subprocess.run(
        ["cmake", "--build", str(core.parent), "--target", "web_llm"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A folder with the page's script, and WebLLM in it."""
    if CHROMIUM is None:
        missing("no Chromium: apt-get install chromium")
    bench = WEB / "bench"
    if not (bench / "node_modules").is_dir():
        run("npm", "ci", "--silent", "--no-fund", "--no-audit", cwd=bench)
    out = tmp_path_factory.mktemp("page")
    node = [f"--external:{name}" for name in ("url", "ws", "perf_hooks", "module")]
    script = str(ROOT / "tests" / "web" / "web_llm.mjs")
    options = ["--bundle", "--format=esm", *node, f"--outfile={out / 'page.mjs'}"]
    run(tool("esbuild"), script, *options, NODE_PATH=str(bench / "node_modules"))
    return out


@pytest.fixture(scope="module")
def report(web_llm_core, page, prompts, tmp_path_factory):
    """What WebLLM says of the demo model."""
    model = tmp_path_factory.mktemp("model")
    folder = model / "resolve" / "main"  # as on Hugging Face's hub: WebLLM asks for no other
    folder.parent.mkdir()
    ensure_artifact("demo", target="webgpu:web-llm", quant=QUANT, limits=LIMITS, out=folder)
    config = json.loads((folder / "mlc-chat-config.json").read_text())
    assert config["context_window_size"] == LIMITS.context
    tokenizer = demo_tokenizer()
    # WebLLM puts no token before a text: it is written here.
    texts = [tokenizer.decode(ids, skip_special_tokens=False) for ids in prompts]
    given = {"prompts": texts, "tokens": TOKENS}
    given |= {"token": tokenizer.token_to_id("a"), "other": tokenizer.token_to_id("b")}
    report = answer_of({"tests": page, "model": model}, given, SECONDS)
    assert "failure" not in report, report["failure"]
    return report


def demo_tokenizer():
    return Tokenizer.from_file(str(ROOT / "src" / "wherry" / "demo" / "tokenizer.json"))


def test_tokens_are_the_cpu_s(report, native, prompts):
    greedy = SamplingParams(temperature=0, max_tokens=TOKENS)
    tokens = native([(prompt, greedy) for prompt in prompts], QUANT)
    decode = demo_tokenizer().decode  # of special tokens, too, if they end nothing
    assert report["texts"] == [decode(ids, skip_special_tokens=False) for ids in tokens]


def test_its_other_functions(report):
    assert report["biased"] == "aaaa"
    # Of two letters the likelier, until it was written too often: a penalty grows to 2 * TOKENS.
    assert set(report["either"] + report["penalized"]) == {"a", "b"}
    assert len(set(report["penalized"])) == 2 and report["penalized"] != report["either"]
    assert report["drawn"] == report["again"]
