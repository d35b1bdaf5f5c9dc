"""The notebook: Python and a model in one page. What Python does without a page: test_wasm.py."""

from __future__ import annotations

import pytest

from wherry.compiler.api import ensure_artifact

from .browser import CHROMIUM
from .conftest import ROOT, missing
from .package import run, served, tool


@pytest.mark.browser
@pytest.mark.nightly  # a minute of a browser's CPU
def test_the_notebook(wheel, tmp_path):
    if CHROMIUM is None:
        missing("no Chromium: apt-get install chromium")
    place, shots = tmp_path / "notebook", ROOT / "build" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    run("node", "scripts/bundle_notebook.js", str(wheel), str(place))
    ensure_artifact("demo", target="wasm", out=place / "models" / "demo")
    run(tool("tsc"), "--noEmit", "false", "--outDir", "build", "--sourceMap")
    with served(place) as url:
        run(
            "node",
            "--test",
            "build/test/page/notebook.test.js",
            WHERRY_NOTEBOOK=url,
            WHERRY_SHOTS=str(shots),
            CHROMIUM=CHROMIUM,
        )
