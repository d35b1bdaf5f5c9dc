"""A build of the modules for pages without xgrammar: it says so, and so do its refusals."""

from __future__ import annotations

import base64
import gzip
import shutil
import subprocess
import sys

import pytest

from .package import ROOT, run

pytestmark = pytest.mark.nightly  # minutes of emscripten


def test_it_is_said_when_it_is_built_and_when_a_grammar_is_needed(tools, compiled, tmp_path):
    build = tmp_path / "build"
    options = [f"-DPython_EXECUTABLE={sys.executable}", f"-DWHERRY_XGRAMMAR={tmp_path / 'none'}"]
    configured = subprocess.run(
        ["cmake", "-S", str(ROOT / "web" / "core"), "-B", str(build), *options],
        capture_output=True,
        text=True,
        check=True,
    )
    said = " ".join(configured.stderr.split())
    assert "This build refuses response_format, grammars and strict tools" in said
    run("cmake", "--build", str(build), "--target", "app_modules", timeout=1800)
    output = tmp_path / "js"
    shutil.copytree(compiled, output)
    (output / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(ROOT / "web" / "node_modules")
    for name in ("app", "grammar"):
        packed = base64.b64encode(gzip.compress((build / f"wherry-{name}.wasm").read_bytes()))
        script = output / "src" / "standalone" / f"{name}.js"
        script.write_text(f'export const program = "{packed.decode()}";\n')
    run("node", "--test", str(output / "test" / "without" / "grammars.test.js"))
