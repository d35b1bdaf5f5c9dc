"""EXAONE 4's configuration, dense and with experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import RopeConfig
from ..config import Epsilon, Positions, Range
from ..decoder import FULL, WINDOWED


@dataclass(frozen=True, slots=True, kw_only=True)
class Exaone4Config(decoder.WindowedConfig):
    """Fields of Exaone4's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 32}
    rms_norm_eps: Epsilon = 1e-5
    sliding_window: Positions | None = 4096
    # Every Nth layer has no sliding window; or a letter for each layer: L has a window, G has none.
    sliding_window_pattern: Annotated[int, Range(0, 2**12)] | str | None = 4
    # kind of the attention of each block of multi-token prediction; (): that of the first layer
    mtp_layer_types: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        yield from decoder.WindowedConfig.problems(self)
        pattern = self.sliding_window_pattern
        if not self.layer_types and (isinstance(pattern, str) or not pattern) and self.window:
            yield f"sliding_window_pattern: {pattern!r} without layer_types, supported is a number"
        unknown = sorted(set(self.mtp_layer_types) - {FULL, WINDOWED})
        if unknown:
            yield f"mtp_layer_types: found {', '.join(unknown)}, supported are {FULL}, {WINDOWED}"

    def windowed(self, layer: int) -> bool:
        """Return whether `layer`, or a block after the last one, has the sliding window."""
        if layer < self.num_hidden_layers:
            return decoder.WindowedConfig.windowed(self, layer)
        if self.mtp_layer_types:
            return self.mtp_layer_types[0] == WINDOWED
        return decoder.WindowedConfig.windowed(self, 0)

    def is_windowed(self, layer: int) -> bool:
        pattern = self.sliding_window_pattern
        return isinstance(pattern, int) and (layer + 1) % pattern != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        """Return RoPE of a layer; if some layers have a sliding window, only these rotate."""
        return self.rope if self.window is None or self.windowed(layer) else None

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)
