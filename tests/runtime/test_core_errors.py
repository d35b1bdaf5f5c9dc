"""What the core's statuses are to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.errors import ArtifactError, ResourceError, UsageError, WherryError
from wherry.runtime.core.native import NativeCore

WAYS = ". Make room (wherry cache prune), or choose another disk: export WHERRY_CACHE=DIR"


class Failing:
    """The C functions of a core whose models do not load."""

    def __init__(self, status):
        self.status = status

    def wherry_model_load(self, *_):
        return self.status

    def wherry_last_error(self):
        return b"so it is"


@pytest.mark.parametrize(
    ("status", "kind", "more"),
    [
        (-1, UsageError, ""),
        (-3, ResourceError, ""),
        (-4, ArtifactError, ""),
        (-6, WherryError, ""),
        (-10, ResourceError, WAYS),
    ],
)
def test_a_status_has_its_error_and_exit_code(status, kind, more):
    with pytest.raises(kind) as raised:
        NativeCore(Failing(status), Path("model.so"), Path(), "cpu", {}, {})
    assert type(raised.value) is kind and str(raised.value) == f"so it is{more}"
