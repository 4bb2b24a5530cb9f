"""Replacements in torch for MegaBlocks' CUDA extensions, for use if those are not built.

There are only those that its grouped layer calls on one device, with the extensions' signatures:
``sort``, ``histogram`` and ``inclusive_cumsum`` of ``megablocks_ops``, ``gmm`` of ``grouped_gemm``.
"""

import torch
from torch import Tensor

from moelaws.model.grouped import product


def sort(x: Tensor, end_bit: int, x_out: Tensor, iota_out: Tensor) -> None:
    """Writes the sorted integers x (n,) and where each came from; stable, like a radix sort.

    ``end_bit``, the number of bits that can be set, is not used; it saves the extension time.
    """
    values, places = torch.sort(x, stable=True)
    x_out.copy_(values)
    iota_out.copy_(places)


def histogram(x: Tensor, bins: int) -> Tensor:
    """Counts how often each of 0 .. bins - 1 occurs in the integers x (n,): int32 (bins,)."""
    counts = torch.zeros(bins, dtype=torch.int32, device=x.device)
    return counts.scatter_add_(0, x.long(), torch.ones_like(x, dtype=torch.int32))


class OnDevice(Tensor):
    """Sizes whose ``cpu`` leaves them on the device; results from them are plain tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def cpu(self, memory_format: torch.memory_format = torch.preserve_format) -> Tensor:
        return self


def histogram_on_device(x: Tensor, bins: int) -> Tensor:
    """Returns ``histogram`` for the ``gmm`` of this module, which reads sizes on the device.

    MegaBlocks calls ``cpu`` on them, for which the host would wait in each layer.
    """
    return histogram(x, bins).as_subclass(OnDevice)


def inclusive_cumsum(x: Tensor, dim: int, out: Tensor) -> None:
    """Writes the running sums of x (rows, n) along ``dim``, in x's type."""
    torch.cumsum(x, dim, dtype=x.dtype, out=out)


def gmm(a: Tensor, b: Tensor, batch_sizes: Tensor, trans_b: bool = False) -> Tensor:
    """Multiplies rows of a (n, k), in runs of ``batch_sizes`` (E,), by each run's b: (n, m).

    b is (E, k, m), or (E, m, k) with ``trans_b``. It is differentiable and takes any floating type,
    while the extension takes bf16 alone.
    """
    ends = batch_sizes.cumsum(0).to(device=a.device, dtype=torch.int32)
    if trans_b:
        b = b.transpose(1, 2)
    # The Triton kernels that read it next go by its address, so it must be contiguous.
    return product(a, b, ends).contiguous()
