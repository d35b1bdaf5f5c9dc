"""Activations that a scheme cannot have are refused before anything is made."""

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.errors import UsageError


def test_float_weights_have_no_int8_activations():
    with pytest.raises(UsageError, match=r"'int8'.*q0f16 are floats.*--activations auto"):
        ensure_artifact("demo", target="cpu", quant="q0f16", activations="int8")


def test_gpus_have_none():
    with pytest.raises(UsageError, match=r"target webgpu multiplies by float ones"):
        ensure_artifact("demo", target="webgpu", quant="q4f16_1", activations="int8")
