"""The processes that train one run together, with the variables of torchrun; usually only one."""

import os
import socket
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
from torch.distributed import FileStore, Store, TCPStore  # type: ignore[attr-defined]

from moelaws.records.memory import die_with
from moelaws.spec.errors import UserError

LOST = 75  # exit code of a process whose run ended elsewhere; another process says why
LACKED = 76  # exit code of a process that lacked memory, if a new start can try less

SILENCE = timedelta(minutes=10)  # after this a collective call stops waiting for other processes
MEETING_TIME = timedelta(minutes=5)  # after this a process stops waiting for others to start
PATIENCE = timedelta(days=365)  # the same for a decision, which may wait for a lock
# Seconds from a failure until it is reported. By then a process that failed because another one did
# has been ended. The first process reports a failure that all share, such as a missing file.
FIRST_TELLS, OTHERS_TELL = 1.0, 3.0

STARTED_BY = "MOELAWS_STARTED_BY"  # the process that starts those of a run, by its id
MEETING = "MOELAWS_MEETING"  # where these processes find each other: a file, or HOST:PORT


@dataclass(frozen=True)
class Ranks:
    """This process' place among those of its run. All must call its methods in the same order."""

    rank: int = 0
    size: int = 1
    # The group for decisions, which are exchanged on the CPU and may take long
    decisions: dist.ProcessGroup | None = None

    @property
    def is_first(self) -> bool:
        """Returns whether this is the process that locks the run and writes its record."""
        return self.rank == 0

    def split(self, count: int) -> list[range]:
        """Returns each process' part of ``count`` things; sizes differ by at most one."""
        ends = [rank * count // self.size for rank in range(self.size + 1)]
        return [range(*pair) for pair in pairwise(ends)]

    def total(self, values: Tensor) -> Tensor:
        """Returns the sum of ``values`` over the processes."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def is_kept(self, weight: Tensor) -> bool:
        """Returns whether ``weight`` stays here between uses, and is not gathered for each one."""
        return self.size == 1 or hasattr(weight, "dealt")

    def maximum(self, value: int) -> int:
        """Returns the largest ``value`` of the processes, without waiting for a device."""
        if self.size == 1:
            return int(value)
        values = torch.tensor(int(value))
        dist.all_reduce(values, dist.ReduceOp.MAX, group=self.decisions)
        return int(values)

    def broadcast(self, value: int) -> int:
        """Returns the first process' ``value``, which must be 0 or more."""
        return self.maximum(value if self.is_first else 0)


ALONE = Ranks()


class Lacked(Exception):  # noqa: N818, it is no error
    """One of several processes lacked memory; they try less when they are started again."""


def place() -> tuple[int, int, int]:
    """Returns this process' RANK, the WORLD_SIZE and the LOCAL_RANK, which are 0, 1, 0 alone.

    Raises UserError for variables that neither ``moelaws train --devices`` nor torchrun sets so.
    """
    size = os.environ.get("WORLD_SIZE") or "1"
    if size == "1":
        return 0, 1, 0
    rank, local = (os.environ.get(name, "0") for name in ("RANK", "LOCAL_RANK"))
    if not all(map(str.isdecimal, (rank, size, local))) or int(rank) >= int(size):
        raise UserError(
            f"WORLD_SIZE is {size!r} and RANK {rank!r}, as torchrun sets neither; unset them, and "
            "choose by --devices how many processes train a run"
        )
    return int(rank), int(size), int(local)


@contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """Joins the processes that were started for one run, for as long as the block runs.

    It yields ``ALONE`` in a process that was started alone. If the block fails in one of
    several processes, that process reports why and ends. If a process ends before its block does,
    the others end within seconds, silently and with ``LOST``, because they would wait for it in
    vain. The kernel kills them if the process that started them is killed.
    """
    rank, size, local = place()
    if size == 1:
        yield ALONE
        return
    # Plain torchrun does not give its id. If it was killed before, its store is gone, too.
    die_with(int(os.environ.get(STARTED_BY) or os.getppid()))
    if os.environ.get("LOCAL_WORLD_SIZE") == str(size):  # nobody elsewhere needs to reach them
        os.environ |= {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
    if device == "cuda":
        torch.cuda.set_device(local)
    try:
        store = _store(rank, size) if MEETING in os.environ else None  # else torchrun's own
        backend = "nccl" if device == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=SILENCE)
    except (OSError, ValueError, dist.DistError) as error:
        if local:  # the first one of each node tells it
            time.sleep(OTHERS_TELL)
            os._exit(2)
        where = os.environ.get(MEETING, "the MASTER_ADDR of torchrun")
        why = str(error).partition("\n")[0]
        raise UserError(
            f"the nodes of this run did not meet at {where}; another one may tell more ({why})"
        ) from error
    decisions = dist.new_group(backend="gloo", timeout=PATIENCE)
    neighbours = dist.new_group(backend="gloo", timeout=PATIENCE)
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


def _store(rank: int, size: int) -> Store:
    """Returns the store by which the processes find each other, once all have come to it.

    Nothing that is read from it is unpickled. On one node it is a file that only they can open.
    """
    where = os.environ[MEETING]
    host, _, port = where.rpartition(":")
    store: Store
    if host:
        listening = None
        if rank == 0:  # without an address the store would listen on every interface of this node
            listening = socket.create_server((host, int(port))).detach()
        store = TCPStore(
            host, int(port), size, rank == 0, MEETING_TIME, False, master_listen_fd=listening
        )
    else:
        store = FileStore(where, size)
    if store.add("arrived", 1) == size:
        store.set("complete", "")
    store.wait(["complete"], MEETING_TIME)
    return store


def _end(error: BaseException) -> NoReturn:
    """Reports ``error`` and ends this process at once.

    The interpreter's own exit could hang or crash, because a thread waits in C++.
    """
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
    """Ends this process if ``neighbour`` ends without having said that all is well."""
    try:
        dist.recv(torch.zeros(1), neighbour, group=group)
    except RuntimeError:
        sys.stderr.flush()
        os._exit(LOST)  # the main thread may wait in a call that nothing ends


def own(parameter: Tensor) -> Tensor:
    """Returns what this process holds of a parameter or gradient, as a view of its memory."""
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter


def place_of(parameter: Tensor, ranks: Ranks) -> tuple[int, int] | None:
    """Returns the first row that is here of a sharded parameter, and its total number of rows.

    It returns None if the parameter is whole.
    """
    if hasattr(parameter, "to_local"):  # torch makes shards of one size, with the last ones smaller
        total = len(parameter)
        return min(total, ranks.rank * -(-total // ranks.size)), total
    return getattr(parameter, "dealt", None)
