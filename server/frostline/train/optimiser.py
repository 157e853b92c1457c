"""Muon for matrices, AdamW for the rest, and the rate at each moment.

Muon (Jordan et al., 2024): the momentum of a matrix is made orthogonal before it is applied, by a few
steps of a polynomial that pushes every singular value towards one. Embeddings and gains stay with
AdamW: a row of an embedding is a word, not a direction of a map.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast to learn.

    Attributes:
        muon: the rate of matrices; 0 leaves them to AdamW as well.
        warm_up: in steps.
        decay: the share of the run that ends at zero.
    """

    muon: float = 0.02
    adam: float = 0.003
    warm_up: int = 60
    decay: float = 0.6
    momentum: float = 0.95
    betas: tuple[float, float] = (0.9, 0.95)


def rate(step: int, progress: float, rates: Rates) -> float:
    """Return the factor of the learning rates: warm-up, one, then linear to zero."""
    # A run of a minute has few steps: it warms up over a twentieth of itself at most.
    warm = min(max((step + 1) / rates.warm_up, progress / 0.05), 1.0)
    return warm * min((1.0 - progress) / rates.decay, 1.0) if rates.decay else warm


class Optimiser:
    """Both rules over one model; its state is plain tensors by name, so that it can be kept."""

    def __init__(
        self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates, exact: bool
    ) -> None:
        parameters = dict(named)
        self._rates = rates
        self._exact = exact
        self._matrices = {
            n: p for n, p in parameters.items() if rates.muon and p.ndim == 2 and "embed" not in n
        }
        self._others = {n: p for n, p in parameters.items() if n not in self._matrices}
        self.state: dict[str, Tensor] = {}
        for name, one in self._matrices.items():
            self.state[f"momentum.{name}"] = torch.zeros_like(one)
        for name, one in self._others.items():
            self.state[f"first.{name}"] = torch.zeros_like(one)
            self.state[f"second.{name}"] = torch.zeros_like(one)

    @torch.no_grad()
    def step(self, factor: float, count: int) -> None:
        """Apply the gradients and clear them. `count` is the number of steps, from 1."""
        self._adam(factor, count)
        shapes: dict[torch.Size, list[str]] = {}
        for name, one in self._matrices.items():
            shapes.setdefault(one.shape, []).append(name)
        for names in shapes.values():
            self._muon(names, factor)
        for one in (*self._matrices.values(), *self._others.values()):
            one.grad = None

    def _muon(self, names: list[str], factor: float) -> None:
        pushes = []
        for name in names:
            gradient = self._matrices[name].grad
            assert gradient is not None
            momentum = self.state[f"momentum.{name}"].lerp_(gradient, 1 - self._rates.momentum)
            pushes.append(gradient.lerp(momentum, self._rates.momentum))
        rows, columns = pushes[0].shape
        size = factor * self._rates.muon * max(1.0, rows / columns) ** 0.5
        for name, push in zip(names, orthogonal(torch.stack(pushes), self._exact), strict=True):
            self._matrices[name].add_(push, alpha=-size)

    def _adam(self, factor: float, count: int) -> None:
        one, two = self._rates.betas
        for name, parameter in self._others.items():
            gradient = parameter.grad
            assert gradient is not None
            first = self.state[f"first.{name}"].lerp_(gradient, 1 - one)
            second = self.state[f"second.{name}"].lerp_(gradient.square(), 1 - two)
            scale = (second / (1 - two**count)).sqrt_().add_(1e-8)
            parameter.addcdiv_(first, scale, value=-factor * self._rates.adam / (1 - one**count))


def orthogonal(matrices: Tensor, exact: bool) -> Tensor:
    """Return (count, rows, columns) matrices with singular values near one.

    Args:
        exact: compute in fp32; bf16 is enough where the machine is faster at it.
    """
    x = matrices if exact else matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x.mT if tall else x).to(matrices.dtype)
