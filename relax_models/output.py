"""What an encoder computes of the last layer's rows. config.json does not say it. Without TVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wherry.ops import PoolingName

# Activations of sentence-transformers' module Dense.
DenseActivation = Literal["identity", "tanh", "relu", "gelu", "silu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseShape:
    """A linear after pooling, with an activation."""

    inputs: int
    outputs: int
    bias: bool
    activation: DenseActivation


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The vector of a text: pooled rows and linears, or the logits of classes."""

    pooling: tuple[PoolingName, ...] = ("mean",)  # several: their vectors are concatenated
    dense: tuple[DenseShape, ...] = ()
    labels: int = 0  # number of classes, whose logits are the vector; 0: an embedding
    # Token after which a pair's second text begins, for models with segments; None: one segment.
    separator: int | None = None

    def width(self, hidden: int) -> int:
        """Return the number of elements of the vector, for rows of `hidden` elements."""
        if self.labels:
            return self.labels
        return self.dense[-1].outputs if self.dense else hidden * len(self.pooling)

    def problems(self, hidden: int) -> list[str]:
        """Return contradictions between the layers' sizes."""
        wrong, width = [], hidden * len(self.pooling)
        for i, layer in enumerate(self.dense):
            if layer.inputs != width:
                wrong.append(f"Dense {i} has {layer.inputs} inputs, what precedes it has {width}")
            width = layer.outputs
        return wrong
