"""A command starts without torch, which it does not need, and can still import it."""

from __future__ import annotations

from ..support.command import python

SCRIPT = """
import sys
from wherry.cli import no_torch
no_torch.hide()
import tvm
print("torch" in sys.modules)
import torch
print(torch.__name__)
"""


def test_tvm_does_not_bring_torch():
    assert python(SCRIPT).split() == ["False", "torch"]
