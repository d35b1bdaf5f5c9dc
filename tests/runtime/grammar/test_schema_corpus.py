"""Real schemas and their instances: what is invalid may not be written, on either side."""

from __future__ import annotations

import pytest

from .corpus import count, files, sides

pytestmark = pytest.mark.nightly
# One schema's lexer runs out of fuel: a pattern of up to 100 words in up to 5,000 characters.
BEYOND = {"server": ["Github_easy---o21053.json: UsageError"], "app": []}


def test_no_invalid_instance_is_allowed():
    paths = files()
    for name, side in sides():
        counts, wrong = count(side, paths)
        print(name, dict(counts), *wrong, sep="\n")
        assert all(any(line.startswith(one) for one in BEYOND[name]) for line in wrong)
        assert counts["invalid, allowed"] == 0
        assert counts["invalid"] > 20_000 and counts["enforced"] > 10_000
        # others have properties that their schema does not name
        assert counts["valid, allowed"] > 0.9 * counts["valid"]
