"""What a page asks its adapter for, and models that no page can have."""

from __future__ import annotations

import pytest

from wherry.errors import UsageError
from wherry.targets.webgpu_buffers import MOST_BYTES, limits_for


def test_what_the_defaults_grant_is_not_requested():
    assert limits_for({}) == limits_for({"a": 128 << 20}) == {}
    assert limits_for({"a": 1, "b": 200 << 20}) == {"maxStorageBufferBindingSize": 200 << 20}
    most = limits_for({"a": MOST_BYTES})
    assert most == {"maxStorageBufferBindingSize": MOST_BYTES, "maxBufferSize": MOST_BYTES}


def test_what_no_browser_binds_is_refused_by_name():
    with pytest.raises(UsageError, match=r"(?s)lm_head: 3,000,000,000 bytes.*Type: --quant"):
        limits_for({"small": 4, "lm_head": 3_000_000_000})
