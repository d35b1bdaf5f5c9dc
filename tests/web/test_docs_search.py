"""The search of the documentation's site, in a browser: users find their own page first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..requirements import declared
from . import browser

ROOT = Path(__file__).parents[2]
# What a user types, and the page that answers; design pages and developers' have the word, too.
WORDS = {
    "server": "server.html",
    "memory": "memory.html",
    "quantization": "quantization.html",
    "browser": "browser.html",
    "install": "install.html",
    "models": "models.html",
    "structured output": "server.html",
    "targets": "targets.html",
}
# Asks the site's own worker, with the settings of its search box.
PAGE = """<!doctype html><meta charset="utf-8"><script type="module">
const given = await (await fetch("/given.json")).json();
const { config, docs } = await (await fetch("/site/search/search_index.json")).json();
const worker = new Worker(given.worker);
const reply = (message) => new Promise((resolve) => {
  worker.onmessage = ({ data }) => resolve(data);
  worker.postMessage(message);
});
await reply({ type: 0, data: { config, docs, options: { suggest: true } } });
const pages = {};
for (const word of given.words) {
  const { data } = await reply({ type: 2, data: word });
  pages[word] = data.items.map((sections) => sections[0].location.split("#")[0]);
}
await fetch("/", { method: "POST", body: JSON.stringify(pages) });
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it, with the theme of pyproject.toml."""
    place = tmp_path_factory.mktemp("docs")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target"]
    subprocess.run([*pip, place / "packages", *declared()["docs"]], check=True)
    environment = os.environ | {"PYTHONPATH": str(place / "packages"), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", place / "site"]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return place / "site"


@pytest.mark.nightly
@pytest.mark.browser
def test_users_find_their_own_page_before_the_design(chromium, site):
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.js")
    given = {"worker": f"/site/{worker.relative_to(site).as_posix()}", "words": list(WORDS)}
    pages = browser.answer_of({"site": site}, given, 60, PAGE.encode())
    assert {word: hits[0] for word, hits in pages.items()} == WORDS, json.dumps(pages, indent=1)
