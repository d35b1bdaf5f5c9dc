"""Which text a conversion is calibrated on, from what the user chose."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from wherry.models.arch import Shape
from wherry.quant.mix import Mix
from wherry.quant.scheme import Scheme

from ..load import Described
from ..quality.texts import Text, given, shipped
from .encode import Calibration, refused

NONE, BUILTIN = "none", "builtin"
_log = logging.getLogger(__name__)


def calibration_text(choice: str) -> Text | None:
    """Return the text of "builtin" or of a file; None for "none".

    Raises:
        UsageError: the file is no text.
    """
    if choice == NONE:
        return None
    return shipped("calibration") if choice == BUILTIN else given(Path(choice).expanduser())


def calibration_of(
    described: Described,
    text: Text | None,
    folder: Path,
    parameters: Mapping[str, Shape],
    scheme: Scheme,
    mix: Mix | None = None,
) -> Calibration | None:
    """Return how a conversion encodes linears; None: by search, with the reason in the log.

    Args:
        described: the model.
        text: the calibration text; None: none was asked for.
        folder: the source's folder.
        parameters: shapes of the model's parameters by name.
        scheme: the scheme of the weights.
        mix: the mix that they are encoded in.
    """
    if text is None:
        return None
    if reason := refused(described, parameters, scheme, mix):
        _log.warning("%s, so its weights are encoded without a calibration text.", reason)
        return None
    return Calibration(described, text, folder)
