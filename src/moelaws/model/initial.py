"""Weights at their start: random matrices, and biases at zero."""

import torch
from torch import nn

Shapes = dict[str, tuple[int, ...]]  # of the weights of a module, by their names


def random_weight(std: float, generator: torch.Generator, *shape: int) -> nn.Parameter:
    """Returns a weight of this shape, whose entries are drawn from N(0, std^2)."""
    return nn.Parameter(torch.empty(shape).normal_(std=std, generator=generator))


def add_weights(
    module: nn.Module, shapes: Shapes, std: float, generator: torch.Generator
) -> tuple[str, ...]:
    """Gives ``module`` random matrices and zero biases of these shapes; returns their names."""
    for name, shape in shapes.items():
        if name.startswith("w_"):
            weight = random_weight(std, generator, *shape)
        else:
            weight = nn.Parameter(torch.zeros(shape))
        module.register_parameter(name, weight)
    return tuple(shapes)
