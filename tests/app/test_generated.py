"""What is made of app/data is in the tree as it would be made now."""

from __future__ import annotations

import re

import pytest

from wherry.data import read

from .generated import GENERATED, ROOT


@pytest.mark.parametrize("path", GENERATED)
def test_nothing_is_stale(path):
    text = GENERATED[path]()
    assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is stale: make generated"


def test_error_codes_are_in_the_list():
    """Those of the server, and nothing that neither it nor apps say."""
    sources = [p.read_text() for p in (ROOT / "runtime_py").rglob("*.py")]
    server = {code for text in sources for code in re.findall(r'code="(\w+)"', text)}
    server -= {"text"}  # of the server's OpenAPI page
    apps = "".join(p.read_text() for p in (ROOT / "app").rglob("*.cc") if p.name != "texts.cc")
    rows = read("error_codes")
    assert server <= {row["code"] for row in rows}
    in_apps = [row for row in rows if f'"{row["code"]}"' in apps]
    assert [row["code"] for row in rows if row not in in_apps and row["code"] not in server] == []
    assert [row["code"] for row in rows if row.get("apps") and row not in in_apps] == []
