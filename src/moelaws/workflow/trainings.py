"""The trainings of a call as the rules see them: the batches, and what each job needs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from moelaws.grids.expand import architectures
from moelaws.grids.sweep import beyond_step_law
from moelaws.records.batches import Order, Orders, is_done
from moelaws.spec.errors import UserError, listed
from moelaws.spec.words import counted
from moelaws.tables.at_hand import imported_files
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.requests import Batch, Requests, batches_of, gpus_here

NAMED = 8  # the most runs of a plan that are named


@dataclass(frozen=True)
class Trainings:
    """The batches of all studies of ``jobs``."""

    jobs: Jobs
    here: bool = True  # whether jobs run on this machine and not on a cluster
    in_job: bool = False  # whether this Snakemake runs within the job of a cluster

    @cached_property
    def requests(self) -> Requests:
        project = self.jobs.project
        gpus = gpus_here(project) if self.here and project.device == "cuda" else ()
        return Requests(project, self.jobs.runs, self.here, gpus)

    @cached_property
    def of_study(self) -> dict[str, dict[str, Batch]]:
        """Returns the batches of each study, which depend on no other study and no machine."""
        batches = {}
        for key, sweep in self.jobs.sweeps.items():
            runs = {run.run_id: run for run in sweep.runs}
            anywhere = Requests(self.jobs.project, runs)
            trunks = {key: run.config.trunk for key, run in runs.items()}
            batches[key] = batches_of(
                runs, anywhere.seconds, self.jobs.project.batch_seconds, trunks.__getitem__
            )
        return batches

    @cached_property
    def batches(self) -> dict[str, Batch]:
        """Returns the runs of all batches by digest; two studies may share one."""
        return {k: runs for batches in self.of_study.values() for k, runs in batches.items()}

    @cached_property
    def pending(self) -> dict[str, list[str]]:
        """Returns digest of a batch that is not done -> its runs that have no summary yet."""
        results, kept = self.jobs.results, self.jobs.all_kept
        pending = {}
        for digest, batch in self.batches.items():
            keeps = {run: tuple(kept[run]) for run in batch if run in kept}
            if not is_done(results.batch(digest), keeps, results):
                pending[digest] = [run for run in batch if not results.summary(run).exists()]
        return pending

    def prepare(self) -> None:
        """Writes what the pending batches must train, and removes markers that are not true.

        A marker is not true if a run's record was removed or trained anew, if a run lacked memory,
        or if weights that must be kept are missing. Snakemake then always runs the job.
        """
        results, kept = self.jobs.results, self.jobs.all_kept
        for digest in self.pending:
            orders = tuple(
                Order(
                    config=self.jobs.runs[run].config,
                    keep=run in kept,
                    steps=tuple(kept.get(run, ())),
                )
                for run in self.batches[digest]
            )
            Orders(runs=orders).write(results.batch_runs(digest))
            try:
                results.batch(digest).unlink(missing_ok=True)
            except OSError as error:
                raise UserError(f"{error.filename}: cannot be removed: {error.strerror}") from None
        for kind, files in (("hidden", results.hidden), ("scores", results.scores)):
            for digest, batch in self.batches.items():
                marker = results.probed(kind, digest)
                if marker.exists() and not all(files(run).exists() for run in self.kept(batch)):
                    marker.unlink()

    def kept(self, batch: Batch) -> list[str]:
        """Returns the runs of a batch whose weights are kept."""
        return [run for run in batch if run in self.jobs.all_kept]

    # ---- files

    def markers(self, study: str | None = None) -> list[Path]:
        """Returns the markers of all batches, or of one study's."""
        batches = self.batches if study is None else self.of_study[study]
        return list(map(self.jobs.results.batch, batches))

    def table_inputs(self, study: str) -> list[Path]:
        """Returns the inputs of a study's table: its batches, or imported tables that are here."""
        files = imported_files(self.jobs.studies[study])
        return [p for pair in files.items() for p in pair if p.is_file()] or self.markers(study)

    def corpora(self, digest: str) -> list[Path]:
        """Returns the descriptions of the corpora on which the runs of a batch train."""
        corpora = self._corpora(self.batches[digest])
        return [self.jobs.results.corpus(corpus) / "meta.json" for corpus in corpora]

    def tasks(self, digest: str) -> list[Path]:
        """Returns the task files for the kept runs of a batch."""
        runs = self.kept(self.batches[digest])
        return [*map(self.jobs.results.tasks, self._corpora(runs))]

    def _corpora(self, runs: Iterable[str]) -> Iterable[str]:
        return dict.fromkeys(self.jobs.runs[run].config.corpus.corpus_id for run in runs)

    def probed(self, study: str, entry: Any) -> list[Path]:
        """Returns the markers of kept runs, and the speeds, that a derived table reads."""
        results, files = self.jobs.results, list[Path]()
        for digest, batch in self.of_study.get(study, {}).items():
            if self.kept(batch):
                files += [results.batch(digest)] * bool(entry.weights)
                files += [results.probed("hidden", digest)] * bool(entry.hidden)
                files += [results.probed("scores", digest)] * bool(entry.scores)
        return files + [self.jobs.folder.speed(study)] * bool(entry.speed)

    # ---- one job

    def resources(self) -> dict[str, Callable[..., Any]]:
        """Returns a training job's requests as functions for Snakemake; retries request more."""

        def of(ask: Callable[..., Any]) -> Callable[..., Any]:
            return lambda wildcards: ask(self.batches[wildcards.batch])

        def again(ask: Callable[..., Any]) -> Callable[..., Any]:
            return lambda wildcards, attempt: ask(self.batches[wildcards.batch], attempt)

        requests = self.requests
        resources = {"mem_mb": again(requests.memory_mb), "runtime": again(requests.minutes)}
        resources |= {"workers": of(requests.workers), "runs_per_gpu": of(requests.runs_per_gpu)}
        resources |= {"devices": of(requests.devices), "spans": of(requests.nodes)}
        if requests.cuda and not self.here:
            resources["gpu"] = of(
                lambda runs: requests.job_gpus(runs) * (requests.nodes(runs) == 1)
            )
            if model := self.jobs.project.gpu_model:
                resources["gpu_model"] = of(lambda runs: model if requests.nodes(runs) == 1 else "")
            # Else Slurm may give a job GPUs of several nodes. Within the job, Snakemake's step has
            # one node; it starts the run's step on all.
            resources["nodes"] = of(lambda runs: 1 if self.in_job else requests.nodes(runs))
        if not self.here and any(requests.nodes(batch) > 1 for batch in self.batches.values()):
            resources["tasks"] = resources["nodes"]
            # A negative number asks for no task by GPU, for by default each GPU gets one.
            resources["tasks_per_gpu"] = of(lambda runs: -1)
            resources["gres"] = of(self._gpus_of_each_node)
        return resources

    def _gpus_of_each_node(self, runs: Iterable[str]) -> str:
        """Returns what a job on several nodes requests on each node, as Slurm's --gres.

        A total for the whole job might be spread unequally. Slurm would also refuse it in the step
        of one node in which the executor starts the job.
        """
        nodes, model = self.requests.nodes(list(runs)), self.jobs.project.gpu_model
        each = self.requests.devices(list(runs)) // nodes
        return f"gpu:{model}:{each}" if model and nodes > 1 else f"gpu:{each}" if nodes > 1 else ""

    def threads(self, digest: str, cores: int) -> int:
        """Returns the cores of a batch's job if Snakemake has ``cores`` of the machine."""
        return self.requests.threads(self.batches[digest], cores)

    def priority(self, digest: str) -> int:
        """Returns the estimated seconds of a batch, so that the longest begins first."""
        costs = self.requests.costs
        return int(sum(costs[run].device_seconds for run in self.batches[digest]))

    def timed(self, study: str) -> list[str]:
        """Returns the runs that are timed side by side, one of each architecture."""
        return [run.run_id for run in architectures(self.jobs.sweeps[study].runs)]

    def timing_threads(self, study: str, cores: int) -> int:
        """Returns torch's threads while a study is timed, those of a run on one device."""
        runs = self.timed(study) if self.here else []
        return min((self.requests.threads([run], cores) for run in runs), default=1)

    @property
    def one_gpu(self) -> dict[str, Any]:
        """Returns the request for a GPU of a cluster's job that trains nothing; else nothing."""
        if self.here or not self.requests.cuda:
            return {}
        return {"gpu": 1, "gpu_model": self.jobs.project.gpu_model or ""}

    @property
    def device_options(self) -> str:
        """Returns the options for the device; a cluster assigns GPUs to each job itself."""
        gpus = self.jobs.project.gpus
        if not self.requests.cuda:
            return "--device cpu"
        if not self.here:
            return "--device cuda"
        return f"--device cuda --gpus {gpus if gpus == 'all' else ','.join(map(str, gpus))}"

    def lines(self) -> list[str]:
        """Returns the lines that a user should read before trainings begin."""
        pending = [run for runs in self.pending.values() for run in runs]
        if not pending:
            return []
        lines = [beyond_step_law(self.jobs.sweeps.values(), self.jobs.project)]
        if self.here and self.requests.cuda:
            lines.append(self.requests.gpu_words(pending))
        return [*filter(None, lines)]

    def words(self, digests: Iterable[str]) -> str:
        """Returns how many runs a plan trains, in how many batches, and which; empty for none."""
        batches = [digest for digest in digests if digest in self.pending]
        runs = [run for digest in batches for run in self.pending[digest]]
        if not batches:
            return ""
        whole = sum(len(self.batches[digest]) for digest in batches)
        of = f"{counted(len(batches), 'batch', 'batches')} of {counted(whole, 'run')}"
        if not runs:
            return f"no run will train; {of} {'is' if len(batches) == 1 else 'are'} looked through"
        return f"{counted(len(runs), 'run')} will train ({listed(runs, NAMED)}), in {of}"
