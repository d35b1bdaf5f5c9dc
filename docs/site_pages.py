"""Brings the repository's own pages into the site: mkdocs calls `on_files` and `on_page_markdown`.

README, ARCHITECTURE, CONTRIBUTING and the READMEs of web/ and mobile/ stay where readers of the
repository look for them; the site shows the same text, with links between its pages.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
# File of the repository: page of the site.
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "web/README.md": "browser.md",
    "mobile/README.md": "phones.md",
    "benchmarks/README.md": "benchmarks.md",
}
_FOR_DEVELOPERS = ("architecture.md", "contributing.md", "changelog.md", "benchmarks.md")
_LISTS = ("http-api.md", "python-api.md", "mobile-api.md")  # have a heading for each word
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")
_SOURCE = re.compile(r"(src(?:set)?=\")(docs/)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside of docs/."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text()
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Make links between files of the repository links between pages of the site."""
    here = page.file.src_uri
    if here.startswith("design/") or here in _FOR_DEVELOPERS:
        page.meta.setdefault("search", {"boost": 0.3})  # users look for their own page
    elif here in _LISTS:
        page.meta.setdefault("search", {"boost": 0.5})
    source = {site: repo for repo, site in PAGES.items()}.get(here, f"docs/{here}")

    def relinked(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target not in PAGES and not target.startswith("docs/"):
            return f"{text} (`{target}`)"  # a file that the site does not have
        site = PAGES.get(target) or target.removeprefix("docs/")
        return f"[{text}]({posixpath.relpath(site, posixpath.dirname(here) or '.')}{anchor})"

    return _SOURCE.sub(r"\1", _LINK.sub(relinked, markdown))
