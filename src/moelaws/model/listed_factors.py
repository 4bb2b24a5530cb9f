"""The factors of a model's parameters, as ``moelaws show`` lists them."""

import re

import torch

from moelaws.model.parameterization import Factors, factors
from moelaws.model.transformer import Transformer
from moelaws.spec.model import Model


def listed_factors(model: Model) -> dict[str, Factors]:
    """Returns parameter -> its factors; in a name ``*`` stands for each layer that has it."""
    with torch.device("meta"):  # which has shapes and no numbers
        net = Transformer(model, 0)
    return {
        re.sub(r"\.\d+\.", ".*.", name): factors(model, name, weight.shape)
        for name, weight in net.named_parameters()
    }
