"""Describes models in the shapes of Anthropic's API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from ...models import Listed


def described(model: Listed) -> dict[str, Any]:
    """Describe a model in Anthropic's shape."""
    created = datetime.fromtimestamp(model.created, timezone.utc)
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "max_input_tokens": model.context,
        "max_tokens": model.context,
        "lifecycle": "active",
    }


def listing(models: Sequence[Listed]) -> dict[str, Any]:
    """List models in Anthropic's shape, all on one page."""
    names = [model.name for model in models]
    ends = (names[0], names[-1]) if names else (None, None)
    return {
        "data": [described(model) for model in models],
        "has_more": False,
        "first_id": ends[0],
        "last_id": ends[1],
    }
