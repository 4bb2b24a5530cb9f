"""The formulas that a GPU computes in one kernel, against those that the CPU computes."""

import pytest
import torch
import torch.nn.functional as F

from moelaws.model import attention, fused, grouped, head

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_both_forms_of_the_rotation_and_their_gradients_are_equal():
    rotation = attention.rotary(9, 16, 10_000.0)
    x, pulled = draw(2, 7, 3, 16).requires_grad_(), draw(2, 7, 3, 16)
    forms = (attention.rotate, attention.rotate_on_gpu)
    results = [form(x, rotation) for form in forms]
    torch.testing.assert_close(results[1], results[0], **CLOSE)
    gradients = [torch.autograd.grad(result, x, pulled)[0] for result in results]
    torch.testing.assert_close(gradients[1], gradients[0], **CLOSE)


def test_both_forms_of_the_experts_activation_and_its_gradients_are_equal():
    h_XM, gates_X1, da_XF = draw(11, 12), draw(11, 1).sigmoid(), draw(11, 6)
    a_XF, silu_XF = grouped.activation(h_XM, gates_X1)
    torch.testing.assert_close(grouped.fused_activation(h_XM, gates_X1), a_XF, **CLOSE)
    of_gpu = grouped.activation_backward(h_XM, None, gates_X1, da_XF.clone())
    expected = grouped.activation_backward(h_XM, silu_XF, gates_X1, da_XF.clone())
    torch.testing.assert_close(of_gpu, expected, **CLOSE)


def test_a_sum_of_rows_is_that_of_embedding_bag():
    rows_XD, places_TK = draw(12, 5), torch.randperm(12).view(4, 3)
    expected = grouped.sum_of_rows(rows_XD, places_TK)
    torch.testing.assert_close(grouped.fused_sum_of_rows(rows_XD, places_TK), expected, **CLOSE)


def test_products_of_groups_without_rows_are_zeroed_whatever_memory_held():
    products, ends = torch.full((4, 2, 3), float("nan")), torch.tensor([0, 5, 5, 7])
    products[1], products[3] = 1.0, 2.0
    grouped.zero_where_empty(products, ends)
    assert products.sum((1, 2)).tolist() == [0, 6, 0, 12]
    a_XN, b_XM = draw(7, 4), draw(7, 8)
    expected = torch.stack([torch.zeros(4, 8), a_XN[:5].t() @ b_XM[:5], torch.zeros(4, 8),
                            a_XN[5:].t() @ b_XM[5:]])  # fmt: skip
    torch.testing.assert_close(grouped.by_group(a_XN, b_XM, ends.int()), expected, **CLOSE)


def test_the_residual_stream_is_added_and_normed_as_by_two_functions():
    x, y, gain = draw(2, 3, 8), draw(2, 3, 8), draw(8)
    summed, normed = attention.added_and_normed(x, y, gain, torch.float32)
    torch.testing.assert_close(summed, x + y, **CLOSE)
    torch.testing.assert_close(normed, attention.normed(x + y, gain, torch.float32), **CLOSE)
    torch.testing.assert_close(normed, F.rms_norm(x + y, (8,), gain, 1e-6), **CLOSE)


@pytest.mark.parametrize("entries", [1 << 24, 64])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_the_loss_by_chunks_is_cross_entropy(monkeypatch, entries, on_gpu):
    """Value and gradients against torch's own in float64, for one chunk and for many."""
    monkeypatch.setitem(head.ENTRIES, "cpu", entries)
    if on_gpu:
        monkeypatch.setattr(head, "_nats_and_gradient", head.fused_nats_and_gradient)
    h, w, target = draw(13, 6).requires_grad_(), draw(17, 6).requires_grad_(), torch.arange(13) % 17
    weight = 0.3  # of a micro-batch
    loss = head.mean_loss(h, w, target)
    gradients = torch.autograd.grad(weight * loss, (h, w))
    doubles = [t.detach().double().requires_grad_() for t in (h, w)]
    expected = F.cross_entropy(doubles[0] @ doubles[1].t(), target)
    torch.testing.assert_close(loss.double(), expected, **CLOSE)
    theirs = torch.autograd.grad(weight * expected, doubles)
    torch.testing.assert_close([g.double() for g in gradients], list(theirs), **CLOSE)
    per_token = F.cross_entropy(h @ w.t(), target, reduction="none")
    torch.testing.assert_close(head.token_losses(h, w, target), per_token.detach(), **CLOSE)


def test_the_weight_of_a_micro_batch_is_not_rounded_to_the_computing_type():
    """1/3 in bf16 is off by two thousandths, and so would all gradients of the head be."""
    h = draw(64, 16).bfloat16().requires_grad_()
    w, target = draw(32, 16).bfloat16(), torch.arange(64) % 32
    whole, third = (
        torch.autograd.grad(c * head.mean_loss(h, w, target), h)[0].double().norm()
        for c in (1.0, 1 / 3)
    )
    assert float(third / whole) == pytest.approx(1 / 3, rel=3e-4)


def test_only_a_chunk_of_logits_is_kept(monkeypatch):
    """The backward pass keeps two gradients, not the logits."""
    h, w = draw(512, 4).requires_grad_(), draw(1024, 4).requires_grad_()
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        head.mean_loss(h, w, torch.zeros(512, dtype=torch.int64))
    assert max(kept) == w.numel()


def test_without_a_compiler_of_c_nothing_is_compiled(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    fused.can_compile.cache_clear()
    try:
        assert not fused.can_compile()
    finally:
        fused.can_compile.cache_clear()
