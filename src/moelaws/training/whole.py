"""The whole weights of a model, wherever its processes hold them."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from moelaws.model.transformer import Transformer
from moelaws.training.ranks import Ranks


def whole_weights(model: Transformer, ranks: Ranks) -> Mapping[str, Tensor]:
    """Returns all weights by name, on the first process; all processes call it together."""
    if ranks.size == 1:
        return model.state_dict()
    from moelaws.training.sharding import gathered  # loads much of torch

    return gathered(model, ranks)
