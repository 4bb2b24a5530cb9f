"""No position may know what comes behind it: a decoder's losses would be worth nothing."""

import pytest
import torch

from architectures import BALANCED, CONTEXT, SECTIONAL, routed, small
from moelaws.model.transformer import Transformer

CUTS = (5, 6, 8)  # within chunks of 4, 6 and 8, and at their ends
MODELS = SECTIONAL | BALANCED | {"tokens": routed(), "dense": small()}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_other_tokens_behind_a_position_change_nothing_at_it(model):
    built = Transformer(model, 0)
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(model.vocab_size, (2, CONTEXT), generator=generator)
    with torch.no_grad():
        logits = built(tokens)[0].view(2, CONTEXT, -1)
        for cut in CUTS:
            other = tokens.clone()
            other[:, cut:] = (other[:, cut:] + 1) % model.vocab_size
            changed = built(other)[0].view(2, CONTEXT, -1)
            torch.testing.assert_close(changed[:, :cut], logits[:, :cut], rtol=1e-4, atol=1e-4)
            assert (changed[:, cut] - logits[:, cut]).abs().max() > 1e-3
            # Nor does it matter whether there is anything at all.
            short = built(tokens[:, :cut])[0].view(2, cut, -1)
            torch.testing.assert_close(short, logits[:, :cut], rtol=1e-4, atol=1e-4)
