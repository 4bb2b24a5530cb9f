"""Who trains on which GPU: locks in a folder of this machine's, for all users and workflows on it.

A GPU has 24 shares, each a file. A run locks as many of one GPU as its part of it is, before CUDA
starts, and holds them until it ends: the kernel frees a lock however its process dies. A run on
several GPUs takes all shares of each, at the same moment.

Nobody waits for ever. Who finds no room takes a numbered ticket, which is a locked file too, and
looks again and again. Meanwhile the ticket names the GPUs with the most room, as many as it wants,
and who comes later stays away from these: they can only empty. So a run that wants a whole GPU gets
it though smaller ones keep coming, and the other GPUs stay in use.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from moelaws.gpus.listing import Gpu
from moelaws.spec.errors import UserError

SHARES = 24  # of a GPU: 1, 2, 3, 4, 6, 8, 12 or 24 runs have equal parts of it
FOLDER = "MOELAWS_GPU_SLOTS"  # the environment variable that names another folder
_LOOK = 0.5  # seconds between two looks for room
_LIST = 2.0  # seconds between two looks at what else runs on the GPUs


@contextmanager
def taken(
    gpus: Callable[[], Sequence[Gpu]], shares: int, on_wait: Callable[[str], None], number: int = 1
) -> Iterator[list[Gpu]]:
    """Holds ``shares`` of each of ``number`` of the ``gpus`` while the block runs.

    Waits until so many have room, and takes all at once: who holds some never waits for more. GPUs
    that programs other than ours use are skipped, for as long as they do.

    Args:
        gpus: lists the GPUs, anew from time to time.
        on_wait: is called once with what is waited for, when waiting begins.

    Raises:
        UserError: as ``gpus`` does at first, where there are fewer than ``number``, or where the
            locks cannot be written.
    """
    folder = Path(os.environ.get(FOLDER, "/tmp/moelaws-gpus"))
    held: list[int] = []
    try:
        with _Ticket(folder) as ticket:
            known, listed = gpus(), time.monotonic()
            if len(known) < number:
                raise UserError(f"{number} GPUs are asked for, and there are {len(known)}")
            waits = False
            while not (mine := _try_take(folder, ticket, known, shares, held, number)):
                if not waits:
                    on_wait(_waiting(known, shares, number))
                    waits = True
                time.sleep(_LOOK)
                if time.monotonic() - listed > _LIST:
                    with suppress(UserError):  # a hiccup of the driver's; it was well at first
                        known = gpus()
                    listed = time.monotonic()
        yield mine
    finally:
        for descriptor in held:
            os.close(descriptor)


def _try_take(
    folder: Path,
    ticket: _Ticket,
    gpus: Sequence[Gpu],
    shares: int,
    held: list[int],
    number: int,
) -> list[Gpu]:
    """Returns the GPUs of which ``held`` now has ``shares`` each; none where too few have room."""
    with _one_at_a_time(folder):
        promised = ticket.promised()
        free = {gpu: _free(folder, gpu) for gpu in gpus if gpu.uuid not in promised}
        # One that is used though no run of ours is on it is somebody else's now.
        ours = [gpu for gpu in free if not (gpu.is_used and len(free[gpu]) == SHARES)]
        best = sorted(ours, key=lambda gpu: -len(free[gpu]))[:number]
        if len(best) == number and len(free[best[-1]]) >= shares:
            # The folder too: systemd then leaves what is old in it alone.
            held += [d for gpu in best for d in free[gpu][:shares]] + [_shared(folder)]
            ticket.close()
        else:
            ticket.write("\n".join(gpu.uuid for gpu in best))
        for descriptor in {d for some in free.values() for d in some}.difference(held):
            os.close(descriptor)
        return best if held else []


class _Ticket:
    """A place in the queue; a file as soon as it is written to, until it is closed or its process
    dies. All but the end is done while nobody else looks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path: Path | None = None
        self.descriptor = -1

    def __enter__(self) -> _Ticket:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def promised(self) -> set[str]:
        """Returns the GPUs for which earlier comers wait, and forgets comers that died."""
        uuids = set()
        for path in sorted(self.folder.glob("ticket-*")):
            if path == self.path:
                break
            if (descriptor := _locked(path)) is not None:
                path.unlink(missing_ok=True)
                os.close(descriptor)
            else:
                with suppress(FileNotFoundError):  # its owner ends at this moment
                    uuids.update(path.read_text().split())
        return uuids

    def write(self, uuids: str) -> None:
        if self.path is None:
            last = max(self.folder.glob("ticket-*"), default=Path("ticket-0"))
            number = int(last.name.partition("-")[2]) + 1
            self.path = self.folder / f"ticket-{number:015d}"
            descriptor = _locked(self.path)
            assert descriptor is not None, "nobody else looks now"
            self.descriptor = descriptor
        self.path.write_text(uuids)

    def close(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.descriptor)
            self.path = None


def _free(folder: Path, gpu: Gpu) -> list[int]:
    """Returns descriptors that hold the locks of the GPU's shares that were free."""
    files = (folder / f"{gpu.uuid}.{share}" for share in range(SHARES))
    return [d for d in map(_locked, files) if d is not None]


def _locked(path: Path) -> int | None:
    """Returns a descriptor that holds the lock of the file; None where another process does."""
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Lets one process after the other look and take: that is a matter of milliseconds."""
    before = os.umask(0)  # all users of the machine share these files
    # Who is suspended here, by Ctrl-Z, would keep all others waiting.
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
    try:
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
        descriptor = _opened(folder / "look")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(
            f"{folder}: the locks of this machine's GPUs cannot be kept there: {error.strerror}; "
            f"let all users write to it, or name another folder by {FOLDER}, for all alike"
        ) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        os.umask(before)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)


def _shared(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _waiting(gpus: Sequence[Gpu], shares: int, number: int) -> str:
    part = "a GPU" if shares == SHARES else f"{shares}/{SHARES} of a GPU"
    if number > 1:
        part = f"{number} GPUs"
    names = (
        f"{gpu.index} ({gpu.used / 1e9:.0f} of {gpu.memory / 1e9:.0f} GB in use)" for gpu in gpus
    )
    return f"waiting for {part}: {', '.join(names)}"
