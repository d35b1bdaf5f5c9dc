"""The Muon optimizer for matrices, which orthogonalises the momentum before each update.

Source: Keller Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor


def orthogonalised(g: Tensor, steps: int = 5) -> Tensor:
    """Return g [n, rows, cols] with all singular values near one: Newton-Schulz in bfloat16."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        y = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(y, y, y, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    """The Muon optimizer with Nesterov momentum and weight decay.

    Equal shapes are updated together.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Update all matrices once."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for p in group["params"]:
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                shapes[p.shape].append(p)
            for shape, params in shapes.items():
                gradients = [
                    p.grad.lerp(self.state[p]["momentum"], group["momentum"]) for p in params
                ]
                updates = orthogonalised(torch.stack(gradients))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                for p, update in zip(params, updates, strict=True):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_(update, alpha=-group["lr"] * scale)
