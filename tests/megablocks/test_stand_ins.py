"""What stands in for MegaBlocks' compiled extensions, against NumPy and a loop over experts."""

import pytest
import torch

from moelaws.model.megablocks import stand_ins


def test_sizes_stay_on_the_device():
    """MegaBlocks fetches the sizes of its products, for which the host would wait in each layer."""
    sizes = stand_ins.histogram_on_device(torch.tensor([2, 0, 2], dtype=torch.int32), 4)
    assert sizes.cpu() is sizes
    fetched = sizes.cpu().to(torch.long)
    assert type(fetched) is torch.Tensor
    assert fetched.tolist() == [1, 0, 2, 0]
    assert type(sizes.cumsum(0)) is torch.Tensor


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize(("k", "m"), [(8, 16), (12, 8), (7, 16), (8, 5), (3, 1)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_gmm_and_its_gradients_are_those_of_a_loop(k, m, trans_b, dtype, tolerance):
    """Widths of whole 16 bytes and others; the first and a middle expert have no rows."""
    sizes = torch.tensor([0, 4, 1, 0, 6])
    g = torch.Generator().manual_seed(0)
    shape = (len(sizes), m, k) if trans_b else (len(sizes), k, m)
    drawn = [torch.randn(int(sizes.sum()), k, generator=g), torch.randn(shape, generator=g)]
    weight = torch.linspace(-1, 1, int(sizes.sum()) * m).view(-1, m)

    def gradients(product, dtype):
        a, b = (t.to(dtype).requires_grad_() for t in drawn)
        y = product(a, b)
        return [y, *torch.autograd.grad((y * weight.to(dtype)).sum(), [a, b])]

    def loop(a, b):
        runs = zip(a.split(sizes.tolist()), b, strict=True)
        return torch.cat([rows @ (w.t() if trans_b else w) for rows, w in runs])

    tensors = gradients(lambda a, b: stand_ins.gmm(a, b, sizes, trans_b=trans_b), dtype)
    assert tensors[0].is_contiguous()
    for got, want in zip(tensors, gradients(loop, torch.float64), strict=True):
        assert got.dtype == dtype
        assert (got.double() - want).norm() <= tolerance * want.norm()
