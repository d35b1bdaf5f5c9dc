"""What a group of paths offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Routes = dict[tuple[str, str], Callable[..., Any]]  # (method, path) -> handler
