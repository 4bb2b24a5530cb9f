"""The device and threads of a run, and its memory: its peak, its lack, and its release."""

import ctypes
import os
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moelaws.records.memory import peak_memory
from moelaws.spec.errors import UserError

Model = TypeVar("Model", bound=nn.Module)
Result = TypeVar("Result")
# What the errors of failed allocations say: torch's on the CPU, C++'s, oneDNN's (in bf16 products
# and GELU), cuBLAS' and the CUDA driver's
NO_MEMORY = (
    "DefaultCPUAllocator",
    "bad_alloc",
    "could not create a primitive",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDA error: out of memory",
)


def threads() -> int:
    """Returns OMP_NUM_THREADS, by default 1, for a sweep runs one process per core."""
    text = os.environ.get("OMP_NUM_THREADS", "1")
    if not text.isdecimal() or not 1 <= int(text) <= 1024:  # tens of thousands crash OpenMP
        raise UserError(f"OMP_NUM_THREADS is {text!r}; it must be a whole number from 1 to 1024")
    return int(text)


def choose_device(name: str) -> str:
    """Returns ``cpu`` or ``cuda``, one of which ``auto`` stands for.

    Raises UserError for another name, or for cuda without a GPU.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"device is {name!r}; allowed are auto, cpu, cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        reason = "no GPU is visible"
        if not torch.version.cuda:
            reason = f"torch {torch.__version__} is built without CUDA"
        raise UserError(f"device cuda cannot be used: {reason}; use --device cpu")
    return "cuda" if available and name != "cpu" else "cpu"


def on_device(name: str, model: Model, compute: Callable[[Model], Result]) -> Result:
    """Returns what ``model`` gives on the device, or on the CPU if memory lacks on a GPU."""
    device = choose_device(name)
    try:
        return compute(model.to(device))
    except (RuntimeError, MemoryError) as error:
        if device == "cpu" or not lacks_memory(error):
            raise
    return compute(model.to("cpu"))


def compute_deterministically() -> None:
    """Makes this process compute the same bits again on the same CUDA device, and more slowly.

    Attention's kernels for fp32 that add in any order are left out, and an operation that torch has
    no deterministic kernel for raises a RuntimeError.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


def check_number(device: str, number: int) -> None:
    """Raises UserError if fewer than ``number`` GPUs are visible here."""
    if device == "cuda" and (seen := torch.cuda.device_count()) < number:
        raise UserError(f"{number} GPUs are to train a run here, and {seen} can be seen")


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "cpu"


def peak_of(device: str) -> int:
    """Returns the most bytes held: by tensors on a GPU, or by this whole process on the CPU."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else peak_memory()


def lacks_memory(error: BaseException) -> bool:
    """Returns whether an allocation failed; torch has no class of such errors on the CPU."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in NO_MEMORY)


def give_back(device: torch.device) -> None:
    """Returns freed memory to the system, because cached blocks may not fit the new shapes."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Upload:
    """Copies batches of tokens to a device; neither the host nor the device's computing waits.

    To a GPU, batches are copied from pinned memory in a separate stream. The host runs some steps
    ahead of the GPU, so a copy is complete before the step that needs it begins.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, tokens: NDArray[np.int64]) -> Tensor:
        """Returns ``tokens`` on the device; the current stream's next work waits for them."""
        on_host = torch.from_numpy(tokens)
        if self.stream is None:
            return on_host
        with torch.cuda.stream(self.stream):
            on_device = on_host.pin_memory().to(self.device, non_blocking=True)
        computing = torch.cuda.current_stream(self.device)
        computing.wait_stream(self.stream)
        on_device.record_stream(computing)  # keeps its memory until the stream has used it
        return on_device
