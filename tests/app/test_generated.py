"""What is made of app/data is in the tree as it would be made now."""

from __future__ import annotations

import re

import pytest

from wherry.data import read

from .generated import MADE, ROOT


@pytest.mark.parametrize("path", MADE)
def test_nothing_is_stale(path):
    made = MADE[path]()
    assert (ROOT / path).read_text(encoding="utf-8") == made, f"{path} is stale: make generated"


def test_error_codes_are_in_the_list():
    """All of them, and nothing else: what apps say is said by the server, too."""
    sources = {p: p.read_text() for p in (ROOT / "runtime_py").rglob("*.py")}
    said = {code for text in sources.values() for code in re.findall(r'code="(\w+)"', text)}
    said -= {"text"}  # of the server's OpenAPI page
    apps = "".join(p.read_text() for p in (ROOT / "app").rglob("*.cc") if p.name != "texts.cc")
    rows = read("error_codes")
    assert said | {"aborted"} == {row["code"] for row in rows}
    assert [r["code"] for r in rows if r.get("apps") and f'"{r["code"]}"' not in apps] == []
