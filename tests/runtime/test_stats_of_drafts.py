"""What /stats says of draft tokens."""

from __future__ import annotations

import pytest

from wherry.runtime.core.interface import CoreStats
from wherry.runtime.core.pulse import Snapshot, as_json


@pytest.mark.parametrize(
    ("written", "verified", "accepted", "share", "each"),
    [
        (10, 8, 6, 0.75, 2.5),  # four steps, of which six draft tokens saved as many more
        (10, 0, 0, None, 1.0),
        (0, 0, 0, None, None),
    ],
)
def test_acceptance_and_tokens_of_a_step(written, verified, accepted, share, each):
    stats = CoreStats(decode_tokens=written, drafted_tokens=verified, accepted_tokens=accepted)
    counters = as_json(
        Snapshot(stats=stats, age_seconds=0, active=0, limit=None, stalled_seconds=0, failed=False)
    )
    assert counters["drafts"] == {
        "verified": verified,
        "accepted": accepted,
        "acceptance": share,
        "tokens_per_step": each,
    }
