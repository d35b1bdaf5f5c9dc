"""Pages of docs/ that `make docs` writes from sources are what it writes."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
MOBILE = DOCS.parent / "mobile"


@pytest.mark.parametrize("name", ["http_api", "mobile_api", "python_api"])
def test_a_page_is_what_the_program_says(name):
    page = (DOCS / f"{name.replace('_', '-')}.md").read_text()
    assert page == import_module(f"docs.reference.{name}").page(), "Type: make docs"


def test_the_page_of_apps_has_what_is_public():
    """What is private in a type, or in a type that is, is not in it; a declaration is whole."""
    page = (DOCS / "mobile-api.md").read_text()
    kotlin, swift = page.split("## Swift")
    assert "class MLCEngine private constructor(app: App) : AutoCloseable" in kotlin
    assert "    suspend fun undo(): Message?" in kotlin and "Native" not in kotlin
    assert "### DownloadState.Complete" in kotlin and "class Http" not in kotlin
    assert "    func prewarm() async throws\n" in swift and "class HTTP" not in swift
    assert "    case unreachable(String, httpStatus: Int?)\n" in swift
    declared = [line for line in page.splitlines() if line.startswith(("    ", "class ", "func "))]
    assert len(declared) > 300
    assert all(line.count("(") == line.count(")") for line in declared)
    assert not [line for line in declared if line.endswith(("=", "{", ","))]


def test_the_catalogue_of_docc_has_each_type_once():
    swift = (DOCS / "mobile-api.md").read_text().split("## Swift")[1]
    types = re.findall(r"^### (\w+)$", swift, re.M)
    folder = MOBILE / "ios" / "Sources" / "Wherry" / "Wherry.docc"
    listed = re.findall(r"^- ``(\w+)``$", (folder / "Wherry.md").read_text(), re.M)
    assert sorted([*listed, "Functions"]) == sorted(types)


def test_dokka_s_page_has_each_package():
    files = (MOBILE / "android" / "src").rglob("*.kt")
    packages = {re.search(r"^package (\S+)$", f.read_text(), re.M)[1] for f in files}
    named = re.findall(r"^# Package (\S+)$", (MOBILE / "android" / "module.md").read_text(), re.M)
    assert sorted(packages) == named
