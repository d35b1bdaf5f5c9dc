"""Operations with a recurrent state on CPUs and in the references, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.ops import GatedDeltaSpec, Mamba2Spec, ShortConvSpec
from wherry.passes.references import recurrent as recurrent_reference
from wherry.targets.kernels.cpu import CpuKernels

from .recurrent_cases import (
    CONVS,
    DELTAS,
    DPLR,
    MAMBA,
    MAMBA2,
    RECURRENCES,
    check_conv,
    check_delta,
    check_dplr,
    check_mamba,
    check_mamba2,
    check_recurrence,
    convolve,
    delta_rule,
)

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("spec", CONVS, ids=lambda s: str(s.channels))
def test_short_conv(any_machine, spec):
    check_conv(any_machine.build, CpuKernels(any_machine.isa), spec)


@pytest.mark.parametrize("spec", DELTAS, ids=lambda s: f"{s.key_dim}x{s.value_dim}")
@pytest.mark.by_day("8x16", "6x20_1")
def test_gated_delta(any_machine, spec):
    check_delta(any_machine.build, CpuKernels(any_machine.isa), spec)


@pytest.mark.parametrize("spec", MAMBA2, ids=lambda s: f"{s.state_dim}x{s.head_dim}")
def test_mamba2(any_machine, spec):
    check_mamba2(any_machine.build, CpuKernels(any_machine.isa), spec)


@pytest.mark.parametrize("spec", MAMBA, ids=lambda s: f"{s.state_dim}x{s.channels}")
def test_mamba(any_machine, spec):
    check_mamba(any_machine.build, CpuKernels(any_machine.isa), spec)


@pytest.mark.parametrize("spec", RECURRENCES, ids=lambda s: str(s.channels))
def test_linear_recurrence(here, spec):
    check_recurrence(here.build, CpuKernels(here.isa), spec)


@pytest.mark.parametrize("spec", DPLR, ids=lambda s: f"{s.key_dim}x{s.value_dim}")
def test_dplr(any_machine, spec):
    check_dplr(any_machine.build, CpuKernels(any_machine.isa), spec)


def test_references(here):
    check_dplr(here.build, recurrent_reference, DPLR[1])
    check_conv(here.build, recurrent_reference, CONVS[1])
    check_delta(here.build, recurrent_reference, DELTAS[0])
    check_delta(here.build, recurrent_reference, DELTAS[-1])
    check_mamba(here.build, recurrent_reference, MAMBA[1])
    check_mamba2(here.build, recurrent_reference, MAMBA2[0])
    check_mamba2(here.build, recurrent_reference, MAMBA2[2])
    check_recurrence(here.build, recurrent_reference, RECURRENCES[1])


class Slipped:
    """Kernels of another operation than the one that is asked for."""

    def __init__(self, kernels, **changes):
        self.kernels, self.changes = kernels, changes

    def short_conv(self, spec):
        return self.kernels.short_conv(ShortConvSpec.from_json(self._slip(spec)))

    def gated_delta(self, spec):
        return self.kernels.gated_delta(GatedDeltaSpec.from_json(self._slip(spec)))

    def mamba2(self, spec):
        return self.kernels.mamba2(Mamba2Spec.from_json(self._slip(spec)))

    def _slip(self, spec):
        return replace(spec, **self.changes).to_json()


def test_a_slip_is_detected(here):
    """The checks are no formality: another activation fails, and another group of key heads."""
    kernels = CpuKernels(here.isa)
    with pytest.raises(AssertionError):
        check_conv(here.build, Slipped(kernels, activation="none"), CONVS[0])
    with pytest.raises(AssertionError):
        check_mamba2(here.build, Slipped(kernels, most_step=2.5), MAMBA2[2])
    rng = np.random.default_rng(0)
    spec = DELTAS[0]
    qkv = rng.standard_normal((5, spec.width)).astype("float32")
    gates = rng.standard_normal((5, 2 * spec.heads)).astype("float32")
    numbers = [rng.standard_normal(spec.heads) for _ in range(2)]
    expected = delta_rule(spec, qkv, gates, *numbers)
    swapped = np.roll(gates, spec.heads, axis=1)  # a in the place of b
    assert np.abs(delta_rule(spec, qkv, swapped, *numbers) - expected).max() > 1e-2
    x = rng.standard_normal((6, CONVS[0].channels))
    weight = rng.standard_normal((4, CONVS[0].channels))
    backwards = convolve(CONVS[0], x, weight[::-1], 0)
    assert np.abs(convolve(CONVS[0], x, weight, 0) - backwards).max() > 1e-2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ShortConvSpec(channels=0, taps=4), "channels"),
        (lambda: ShortConvSpec(channels=4, taps=1), "1 taps"),
        (lambda: GatedDeltaSpec(heads=4, key_heads=3, key_dim=8, value_dim=8), "share"),
        (lambda: Mamba2Spec(heads=4, groups=3, head_dim=8, state_dim=8), "share"),
        (lambda: Mamba2Spec(heads=4, groups=2, head_dim=8, state_dim=8, most_step=-1.0), "-1.0"),
    ],
)
def test_impossible_specs_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
