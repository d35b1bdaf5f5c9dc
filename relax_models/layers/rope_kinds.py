"""RoPE of models whose layers with a sliding window rotate otherwise than those without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..layer_kinds import FULL, WINDOWED


def rope_by_kind(given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """Split `rope_parameters`, which has an object for each kind of layer.

    Returns the fields of config.json with `rope_parameters` of layers without a window, and
    `local_rope_parameters` of those with one. `default` has both kinds' objects, for a config.json
    without any.
    """
    config = dict(given)
    both = config.get("rope_parameters", default)
    if not isinstance(both, Mapping):
        return config  # `read_rope` says that it is no object
    config["rope_parameters"] = both.get(FULL)
    config["local_rope_parameters"] = both.get(WINDOWED)
    # An unknown or missing kind of layer becomes an unknown field, and so an error.
    config |= {f"rope_parameters.{n}": v for n, v in both.items() if n not in default}
    config |= {f"rope_parameters.{n}": "missing" for n in default if not both.get(n)}
    return config


def merged(default: Mapping[str, Any], given: Any) -> Any:
    """Return a kind's RoPE fields over their defaults; what is no object stays, as an error."""
    if given is None:
        return default
    # `read_rope` takes what is empty for absent
    return {**default, **given} if isinstance(given, Mapping) else given or [given]
