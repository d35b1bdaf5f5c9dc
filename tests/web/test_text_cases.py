"""The cases that the browser is held to are answered here as when they were written."""

from __future__ import annotations

import json
from pathlib import Path

from .text_cases import cases

FILE = Path(__file__).parent / "text_cases.json"


def test_the_cases_are_up_to_date():
    written = json.loads(FILE.read_text())
    assert json.loads(json.dumps(cases())) == written, (
        "Type: python -m tests.web.text_cases > tests/web/text_cases.json"
    )
