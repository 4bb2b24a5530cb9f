"""Runs that train together in one job of a cluster, for each is far shorter than a job's start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

SHORT = 60.0  # seconds by estimate: a cluster takes about as long to start a job and see its end
START = 2.0  # seconds that a run takes beside its training
MOST = 200  # runs of a pack: Snakemake's command for the job names each of them


@dataclass(frozen=True)
class Packs:
    """The packs of some sweeps: ``of`` names the pack of each run that has one."""

    of: dict[str, str]

    @classmethod
    def made_of(
        cls,
        sweeps: Mapping[str, Iterable[str]],
        seconds: Callable[[str], float],
        longest: float,
    ) -> Packs:
        """Returns the packs of short runs, which follow from the ``sweeps`` (study -> runs) alone.

        Runs of a pack belong to the same studies: where one of them fails at last, the tables that
        wait for the pack are those that need the run.

        Args:
            seconds: run -> its training by estimate.
            longest: of a pack, in seconds, where its runs trained one after another.
        """
        studies: defaultdict[str, list[str]] = defaultdict(list)
        for study, sweep in sweeps.items():
            for run in sweep:
                studies[run].append(study)
        together: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for run, keys in studies.items():
            if seconds(run) < SHORT:
                together[tuple(keys)].append(run)
        packs: list[list[str]] = []
        for runs in together.values():
            left = 0.0  # seconds of the last pack
            for run in runs:
                took = START + seconds(run)
                if took > left or len(packs[-1]) == MOST:
                    packs.append([])
                    left = longest
                packs[-1].append(run)
                left -= took
        shared = [pack for pack in packs if len(pack) > 1]
        return cls({run: f"pack_{i}" for i, pack in enumerate(shared, 1) for run in pack})

    def firsts(self, needed: Collection[str]) -> frozenset[str]:
        """Returns the runs that ask for what a job needs once: of each pack the first that is
        ``needed``, for the others are in no job."""
        return frozenset({self.of[run]: run for run in reversed(self.of) if run in needed}.values())

    def words(self, needed: Collection[str]) -> str:
        """Returns how many jobs the ``needed`` runs share, as a line for the user, or ""."""
        packs = [self.of[run] for run in needed if run in self.of]
        jobs = len(set(packs))
        shared = f"{jobs} jobs" if jobs > 1 else "one job"
        return f"{len(packs)} short runs share {shared}" if packs else ""
