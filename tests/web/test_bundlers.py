"""What npm packs, in pages as bundlers make them, and in one without a bundler."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from wherry.compiler.api import ensure_artifact

from . import browser
from .package import WEB, run

pytestmark = [pytest.mark.browser, pytest.mark.nightly]

PROGRAM = Path(__file__).parent / "bundled"
PAGE = '<!doctype html><meta charset="utf-8">{}<script type="module" src="/built/main.js"></script>'
MODULE = "H4sIA"  # how the modules of the app begin: gzip in base64
EXPECTED = {
    "said": "Paris.",
    "constrained": '{"n": 5}',
    "refused": "DownloadError",  # also where names are made short
}


class Bundler(NamedTuple):
    """Packages from npm, further files, and a command that writes into built/."""

    packages: tuple[str, ...]
    command: tuple[str, ...]
    files: Mapping[str, str] = {}


VITE = """export default {
  base: "/built/",
  build: { outDir: "built", rolldownOptions: { output: { entryFileNames: "main.js" } } },
  worker: { format: "%s", rolldownOptions: { output: { entryFileNames: "worker.js" } } },
};
"""
VITE_PAGE = '<!doctype html><script type="module" src="/main.js"></script>'
WEBPACK = """export default {
  mode: "production",
  entry: "./main.js",
  output: {
    path: import.meta.dirname + "/built",
    publicPath: "/built/",
    filename: "main.js",
    chunkFilename: (chunk) => (chunk.chunk.name === "worker" ? "worker.js" : "[id].part.js"),
  },
  performance: false,
};
"""
BUNDLERS = {
    "vite": Bundler(
        ("vite@8.3.8",),
        ("vite", "build"),
        {"vite.config.js": VITE % "es", "index.html": VITE_PAGE},
    ),
    "vite-iife": Bundler(  # the default format of workers: one file, without further chunks
        ("vite@8.3.8",),
        ("vite", "build"),
        {"vite.config.js": VITE % "iife", "index.html": VITE_PAGE},
    ),
    "webpack": Bundler(
        ("webpack@5.112.2", "webpack-cli@7.3.1"),
        ("webpack",),
        {"webpack.config.js": WEBPACK},
    ),
    "esbuild": Bundler(
        ("esbuild@0.28.2",),
        (
            *("esbuild", "main.js", "worker.js", "--bundle", "--minify", "--splitting"),
            *("--format=esm", "--outdir=built"),
        ),
    ),
    "rollup": Bundler(
        ("rollup@4.68.7", "@rollup/plugin-node-resolve@16.0.3"),
        ("rollup", "main.js", "worker.js", "-f", "es", "-d", "built", "-p", "node-resolve"),
    ),
}


@pytest.fixture(scope="module")
def packed(compiled, tmp_path_factory):
    """The package as npm packs it."""
    place = tmp_path_factory.mktemp("packed")
    return place / run("npm", "pack", "--silent", "--pack-destination", str(place)).split()[-1]


@pytest.fixture(scope="module")
def answers(tools, chromium) -> Callable[[Path, str], dict]:
    """Serve a folder with the demo model for CPUs; return the results that its page posts."""
    demo = ensure_artifact("demo", target="wasm")

    def answers(built: Path, html: str) -> dict:
        return browser.answer_of({"built": built, "demo": demo}, {}, 120, html.encode())

    return answers


@pytest.mark.parametrize("name", BUNDLERS)
def test_a_bundler_takes_the_package_as_it_is(name, packed, answers, tmp_path):
    bundler = BUNDLERS[name]
    for path in PROGRAM.iterdir():
        shutil.copy(path, tmp_path)
    for file, text in bundler.files.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    options = ("--silent", "--no-fund", "--no-audit")
    run("npm", "install", *options, *bundler.packages, str(packed), cwd=tmp_path)
    command, *rest = bundler.command
    run(str(tmp_path / "node_modules" / ".bin" / command), *rest, cwd=tmp_path)
    built = tmp_path / "built"
    assert answers(built, PAGE.format("")) == {"page": EXPECTED, "worker": EXPECTED}
    has = {path.name for path in built.rglob("*.js") if MODULE in path.read_text()}
    assert has, "no file has the modules of the app"
    assert "main.js" not in has
    assert ("worker.js" in has) == (name == "vite-iife")


def test_a_page_without_a_bundler(packed, answers, tmp_path):
    shutil.unpack_archive(packed, tmp_path, "gztar")
    built = tmp_path / "package" / "dist" / "standalone"
    shutil.copy(PROGRAM / "main.js", built)
    names = {"wherry": "/built/wherry.js", "wherry/worker": "/built/wherry.js"}
    html = PAGE.format(f'<script type="importmap">{json.dumps({"imports": names})}</script>')
    assert answers(built, html) == {"page": EXPECTED, "worker": EXPECTED}
    has = {path.name for path in built.glob("*.js") if MODULE in path.read_text()}
    assert has == {"app.js", "grammar.js"}
    assert (tmp_path / "package" / "LICENSE").read_bytes() == (WEB.parent / "LICENSE").read_bytes()
