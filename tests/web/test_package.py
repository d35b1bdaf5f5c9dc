"""The npm package: its tests, the demo model in Node, its page in a browser, what is packed."""

from __future__ import annotations

import re
import shutil
from itertools import product

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.web import site

from .package import SHOTS, WEB, run, served, tool

VIEWS, THEMES, SIZES = ("chat", "engine"), ("light", "dark"), ("wide", "phone")


@pytest.fixture(scope="module")
def place(tools, page, tmp_path_factory):
    """A site with the demo model for CPUs."""
    folder_of_site = tmp_path_factory.mktemp("site")
    folder = folder_of_site / "models" / "demo"
    ensure_artifact("demo", target="wasm", out=folder)
    site.copy_page(folder_of_site)
    site.write_index(folder_of_site, {"models/demo/": folder})
    return folder_of_site


def test_its_own_tests(compiled):
    tests = sorted(str(p) for p in (compiled / "test").glob("*.test.*js"))
    assert len(tests) == len(list((WEB / "test").glob("*.test.ts")))
    run("node", "--test", *tests)


@pytest.mark.nightly
def test_the_demo_model(compiled, place):
    tests = sorted(str(p) for p in (compiled / "test" / "with_model").glob("*.test.js"))
    run("node", "--test", *tests, WHERRY_MODEL=str(place / "models" / "demo"))


@pytest.mark.browser
@pytest.mark.nightly
def test_its_stores_and_workers(compiled, chromium, place, tmp_path):
    run("node", "scripts/bundle_harness.js", str(tmp_path))
    run(
        "node",
        "--test",
        str(compiled / "test" / "page" / "package.test.js"),
        WHERRY_MODEL=str(place / "models" / "demo"),
        WHERRY_HARNESS=str(tmp_path),
        CHROMIUM=chromium,
    )


@pytest.mark.browser
def test_the_page(compiled, chromium, place):
    SHOTS.mkdir(parents=True, exist_ok=True)
    with served(place) as url:
        test = compiled / "test" / "page" / "page.test.js"
        env = {"WHERRY_SITE": url, "WHERRY_SHOTS": str(SHOTS), "CHROMIUM": chromium}
        run("node", "--test", str(test), **env)
    shown = {f"{view}-{theme}-{size}" for view, theme, size in product(VIEWS, THEMES, SIZES)}
    assert {p.stem for p in SHOTS.iterdir()} >= {"hello", "streaming", "models", *shown}


@pytest.mark.nightly
@pytest.mark.browser
def test_the_page_without_a_server_and_in_two_tabs(compiled, chromium, place):
    SHOTS.mkdir(parents=True, exist_ok=True)
    test = compiled / "test" / "page" / "offline.test.js"
    env = {"WHERRY_PLACE": str(place), "WHERRY_SHOTS": str(SHOTS), "CHROMIUM": chromium}
    run("node", "--test", str(test), **env)


@pytest.fixture
def installed(compiled, tmp_path):
    """A project with the result of `npm pack` and its dependencies."""
    packed = run("npm", "pack", "--silent", "--pack-destination", str(tmp_path)).split()[-1]
    shutil.unpack_archive(tmp_path / packed, tmp_path, "gztar")
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (tmp_path / "package").rename(modules / "wherry")
    for name in ("hash-wasm", "openai", "@types", "@webgpu"):
        (modules / name).symlink_to(WEB / "node_modules" / name)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    return tmp_path


def test_what_npm_packs_runs_the_readme(installed, place):
    code = re.findall(r"```ts\n(.*?)```", (WEB / "README.md").read_text(), re.DOTALL)
    files = {f.relative_to(installed).as_posix() for f in installed.rglob("wherry/**/*")}
    assert {f"node_modules/wherry/{name}" for name in ("dist/index.d.ts", "LICENSE")} <= files
    assert not [f for f in files if "/test/" in f or f.endswith("tsconfig.json")]
    example = next(text for text in code if "engine.load(" in text)
    assert len(example.splitlines()) <= 10
    for number, text in enumerate(code):
        (installed / f"example{number}.ts").write_text(text)
    options = ("--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck")
    types = ("--types", "@webgpu/types", "--noEmitOnError", "--rewriteRelativeImportExtensions")
    sources = [f"example{number}.ts" for number in range(len(code))]
    run(tool("tsc"), *options, *types, *sources, cwd=installed)
    bundling = ("--bundle", "--splitting", "--format=esm", "--outdir=bundled")
    run(tool("esbuild"), f"example{code.index(example)}.js", *bundling, cwd=installed)
    with served(place) as url:
        script = installed / f"example{code.index(example)}.js"
        script.write_text(script.read_text().replace("https://example.org/", url))
        said = run("node", str(script), cwd=installed)
    assert said.startswith("demo runs on wasm\n")
    assert "Paris" in said.replace("\n", "")
