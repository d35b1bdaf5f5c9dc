"""The page of `wherry serve` in a browser, over a server that says what the test tells it."""

from __future__ import annotations

import pytest

from wherry.runtime.server.endpoints.page import FILE, Page

from .package import SHOTS, run


@pytest.mark.browser
@pytest.mark.parametrize("name", ["server_page", "server_images"])
def test_it_shows_each_text_once_and_is_there_for_everybody(name, compiled, chromium):
    SHOTS.mkdir(parents=True, exist_ok=True)
    test = compiled / "test" / "page" / f"{name}.test.js"
    env = {"WHERRY_PAGE": str(FILE), "WHERRY_POLICY": Page().policy, "WHERRY_SHOTS": str(SHOTS)}
    run("node", "--test", str(test), **env, CHROMIUM=chromium)
