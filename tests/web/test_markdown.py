"""Markdown of the page of `wherry serve` and of the demo page: web/markdown, which both have."""

from __future__ import annotations

import pytest

from wherry.runtime.server.endpoints.page import FILE

from .package import need_packages, run


def test_the_page_of_the_server_has_the_markdown_of_this_tree():
    need_packages()
    run("node", "scripts/bundle_server_page.js", "--check")


@pytest.mark.browser
def test_it_is_shown_grows_and_is_harmless(compiled, chromium):
    test = compiled / "test" / "page" / "markdown.test.js"
    run("node", "--test", str(test), WHERRY_PAGE=str(FILE), CHROMIUM=chromium)
