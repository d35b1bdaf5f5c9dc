"""docs/http-api.md and docs/python-api.md are what `make docs` writes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", ["http_api", "python_api"])
def test_a_page_is_what_the_program_says(name):
    page = (DOCS / f"{name.replace('_', '-')}.md").read_text()
    assert page == import_module(f"docs.reference.{name}").page(), "Type: make docs"
