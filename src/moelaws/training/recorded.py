"""A step's forward and backward passes as one CUDA graph, which starts all kernels at once.

A small model's step is some thousand short kernels, and the host takes longer to start them than
the GPU to run them.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from moelaws.training.device import give_back

# The losses of a batch (3,), and the assignments to experts (L, E) where there are experts
Measured = tuple[Tensor, Tensor | None]
Compute = Callable[[Tensor], Measured]
WARM = 2  # steps before the recording, in which kernels are compiled and tuned


class Recorder:
    """Records a function that accumulates gradients, and replays it on other tokens.

    The gradients are those of ``parameters``, which have none before. They and all that is computed
    on the way stay allocated, and a replay writes to them again.
    """

    def __init__(self, parameters: Sequence[Tensor], can_record: bool) -> None:
        self.parameters, self.can_record = parameters, can_record
        self.forget()

    def forget(self) -> None:
        """Frees the memory of a recording; there is another one after some steps."""
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs: list[Tensor] = []
        self.outputs: list[Measured] = []
        self.gradients: list[Tensor | None] = []
        self.steps = 0

    def __call__(self, compute: Compute, tokens: Tensor) -> Measured | None:
        """Returns ``compute(tokens)`` by the recording, which is made once the device is warm.

        Returns None, and has done nothing, before that and where nothing can be recorded.
        """
        if not self.can_record:
            return None
        if self.graph is None:
            self.steps += 1
            if self.steps <= WARM:
                return None
            self._record(compute, tokens)
        if self.graph is None:
            return None
        self.inputs[0].copy_(tokens)
        self.graph.replay()
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        ((losses, counts_LE),) = self.outputs
        return losses.clone(), None if counts_LE is None else counts_LE.clone()

    def _record(self, compute: Compute, tokens: Tensor) -> None:
        """Records, or notes that there is no memory for a second set of all tensors."""
        give_back(tokens.device)
        inputs, graph = tokens.clone(), torch.cuda.CUDAGraph()
        try:
            # A recording that fails would leave its own stream the current one.
            with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
                outputs = compute(inputs)
            self.graph, self.inputs, self.outputs = graph, [inputs], [outputs]
            self.gradients = [parameter.grad for parameter in self.parameters]
        except RuntimeError:
            self.can_record = False
        for parameter in self.parameters:
            parameter.grad = None
        if not self.can_record:  # the error, which holds what was computed, is gone by now
            give_back(tokens.device)
