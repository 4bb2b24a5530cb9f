"""The processes that train one run together, as ``torchrun`` starts them; mostly there is one."""

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from moelaws.spec.errors import UserError

LOST = 75  # exit code of a process whose run ended elsewhere: another one tells why
LACKED = 76  # exit code of a process that lacked memory, where a new start can take less

SILENCE = timedelta(minutes=10)  # of the other processes, after which a collective call gives up
PATIENCE = timedelta(days=365)  # for a decision, such as of one that waits for a lock
# Seconds from a failure until it is told: a process that fails because another one did has ended
# by then. Of a failure that all share, such as a missing file, the first process tells.
FIRST_TELLS, OTHERS_TELL = 1.0, 3.0

STARTED_BY = "MOELAWS_STARTED_BY"  # the process that starts those of a run, by its id
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ranks:
    """This process' place among those of its run. They all call each method, in the same order."""

    rank: int = 0
    size: int = 1
    # For decisions, beside the computation: on the CPU, and patient.
    decisions: dist.ProcessGroup | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the process that locks the run and writes its record."""
        return self.rank == 0

    def split(self, count: int) -> list[range]:
        """Returns each process' share of ``count`` things: equal ones, up to one of them."""
        ends = [rank * count // self.size for rank in range(self.size + 1)]
        return [range(*pair) for pair in pairwise(ends)]

    def total(self, values: Tensor) -> Tensor:
        """Returns the sum of ``values`` over the processes."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def mean(self, values: Tensor) -> Tensor:
        """Returns the mean of ``values`` over the processes."""
        return self.total(values) / self.size

    def is_kept(self, weight: Tensor) -> bool:
        """Tells whether ``weight`` stays here between uses: others are gathered for each one."""
        return self.size == 1 or hasattr(weight, "dealt")

    def maximum(self, value: int) -> int:
        """Returns the largest ``value`` of the processes; no device is waited for."""
        if self.size == 1:
            return int(value)
        values = torch.tensor(int(value))
        dist.all_reduce(values, dist.ReduceOp.MAX, group=self.decisions)
        return int(values)

    def broadcast(self, value: int) -> int:
        """Returns the first process' ``value`` of 0 or more."""
        return self.maximum(value if self.is_first else 0)


ALONE = Ranks()


class Lacked(Exception):  # noqa: N818, it is no error
    """One of several processes lacked memory; started again, they try less."""


def is_one_of_several() -> bool:
    """Tells whether torchrun has started this process beside others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_first_process() -> bool:
    """Tells whether this process speaks for its run: it is the first of several, or alone."""
    return not is_one_of_several() or os.environ.get("RANK") == "0"


@contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """Joins the processes that torchrun has started, for as long as the block runs.

    Yields ``ALONE`` in a process that torchrun did not start. One of several processes in which the
    block fails tells why and ends. When one ends before its block does, the others end within
    seconds, without a word and with ``LOST``: what they wait for would never come. The kernel kills
    them where the process that started them is killed.
    """
    if not is_one_of_several():
        yield ALONE
        return
    _die_with_the_starter()
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=SILENCE)
    decisions = dist.new_group(backend="gloo", timeout=PATIENCE)
    neighbours = dist.new_group(backend="gloo", timeout=PATIENCE)
    rank, size = dist.get_rank(), dist.get_world_size()
    watching = threading.Thread(target=_watch, args=((rank - 1) % size, neighbours), daemon=True)
    watching.start()
    try:
        yield Ranks(rank, size, decisions)
    except BaseException as error:
        time.sleep(OTHERS_TELL if rank else FIRST_TELLS)
        _end(error)
    dist.send(torch.zeros(1), (rank + 1) % size, group=neighbours)  # all is well
    watching.join()
    dist.destroy_process_group()


def _die_with_the_starter() -> None:
    """Asks the kernel to kill this process where its parent is killed.

    The locks of the run's GPUs are the parent's and go with it: others then take these GPUs. Of the
    parent it is the thread that starts processes which must live; torchrun's is its main one.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have been killed before. torchrun does not give its id; but where it is gone, so is its
    # store, without which nobody is joined.
    if os.getppid() != int(os.environ.get(STARTED_BY) or os.getppid()):
        os._exit(LOST)


def _end(error: BaseException) -> NoReturn:
    """Tells ``error`` and ends this process, at once: a thread of it waits in C++, which the
    interpreter's own end does not bear."""
    code = 1
    if isinstance(error, UserError):
        print(f"moelaws: {error}", file=sys.stderr)
        code = 2
    elif isinstance(error, Lacked):
        code = LACKED
    elif isinstance(error, KeyboardInterrupt):
        code = 130
    else:
        traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(code)


def _watch(neighbour: int, group: dist.ProcessGroup | None) -> None:
    """Ends this process where ``neighbour`` ends without having said that all is well."""
    try:
        dist.recv(torch.zeros(1), neighbour, group=group)
    except RuntimeError:
        sys.stderr.flush()
        os._exit(LOST)  # the main thread may wait in a call that nothing ends


def own(parameter: Tensor) -> Tensor:
    """Returns what this process holds of a parameter or of its gradient, sharing its memory."""
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter


def place_of(parameter: Tensor, ranks: Ranks) -> tuple[int, int] | None:
    """Returns the first row of a sharded parameter that is here, and how many rows it has in all;
    None where it is here whole."""
    if hasattr(parameter, "to_local"):  # as torch shards: parts of one size, the last ones smaller
        total = len(parameter)
        return min(total, ranks.rank * -(-total // ranks.size)), total
    return getattr(parameter, "dealt", None)
