"""Seconds and memory of whole fits on simulated tables. Each measurement is of one process.

Tables hold losses of a law's published coefficients with 0.3 % noise.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.cores import using_cores
from moelaws.fitting.intervals import bootstrap
from moelaws.fitting.problem import REACHED, Problem, Solution, problem, solve
from moelaws.fitting.variables import Observations
from moelaws.laws.base import Array
from moelaws.records.memory import peak_memory
from moelaws.records.progress import reporting
from recovery_designs import LOSS_NOISE, allocation_loss, sparsity_loss
from speed.lbfgs import TIGHT, descend_from, value_and_gradient

TIMED = 200  # starts of SciPy that are timed
BUDGETS, SIZES = np.geomspace(6e18, 3e21, 12), np.geomspace(0.2, 5, 20)  # of Chinchilla's points
ENOUGH = 2000  # starts that find the optimum which the bootstrap starts from


def measure_sparsity(sample: int | None, scipy_starts: int, threads: int) -> dict[str, Any]:
    """The sparsity law's grid on 180 runs, and SciPy's loop over some of its starts.

    SciPy's loop takes one thread. The engine is timed on one thread, in turns with SciPy, so that
    other work on the machine hits both alike; and then on several.

    Args:
        sample: how many of the grid's starts the engine runs; None: all.
        scipy_starts: how many SciPy runs to the end; the first ``TIMED`` of them are timed.
        threads: of the engine.
    """
    task = simulated("sparsity.loss", sparsity_loss(), sample)
    # Shuffled, so that the first of them are a fair sample too.
    some = np.random.default_rng(1).permutation(len(task.starts))[:scipy_starts]
    loop = _Loop(task, task.starts[some[:TIMED]])
    alone, alone_solution = _fitted(task, 1, beside=loop)
    numbers, solution = _fitted(task, threads)
    tight = _Loop(task, task.starts[some], solution.value, TIGHT)
    tight.advance(len(some))
    total, best = len(task.starts), solution.value
    own, optima = loop.numbers(total, best), tight.numbers(total, best)
    return numbers | {
        "scipy": {"own_tolerances": own, "tight_tolerances": optima},
        "ratio": own["seconds_extrapolated"] / numbers["seconds"],
        "seconds_on_one_thread": alone["seconds"],
        "cpu_seconds_on_one_thread": alone["cpu_seconds"],
        "ratio_on_one_thread": own["seconds_extrapolated"] / alone["seconds"],
        "cpu_ratio_on_one_thread": own["cpu_seconds_extrapolated"] / alone["cpu_seconds"],
        "same_on_one_thread": bool((alone_solution.ends == solution.ends).all()),
        "ratio_to_optima": optima["seconds_extrapolated"] / numbers["seconds"],
        "objective_excess": best / optima["best"] - 1,
    }


def measure_allocation(sample: int | None, threads: int) -> dict[str, Any]:
    """The allocation law's grid on 240 runs."""
    return _fitted(simulated("allocation.loss", allocation_loss(), sample), threads)[0]


def measure_chinchilla(sample: int | None, threads: int) -> dict[str, Any]:
    """Chinchilla's grid on 240 runs: twelve budgets, twenty sizes around 20 tokens a parameter."""
    C = np.repeat(BUDGETS, len(SIZES))
    N = np.sqrt(C / 120) * np.tile(SIZES, len(BUDGETS))
    points = pd.DataFrame({"N": N, "D": C / (6 * N)})
    return _fitted(simulated("chinchilla", points, sample), threads, times=5)[0]


def measure_bootstrap(draws: int, threads: int) -> dict[str, Any]:
    """Refits of the sparsity law to resampled rows."""
    task = simulated("sparsity.loss", sparsity_loss(), ENOUGH)
    with using_cores(threads), reporting(lines=False) as show:
        solution = solve(task, 0, lambda done, total: show("starts", done, total))
        began, cpu_began = time.perf_counter(), _cpu_seconds()
        bootstrap(task, solution, None, draws, 0, lambda done: show("bootstrap", done, draws))
        seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu_began
    return {
        "rows": task.model.n,
        "draws": draws,
        "threads": threads,
        "ends_that_each_starts_from": len(solution.ends),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": peak_memory() / 1e6,
    }


def simulated(ref: str, points: pd.DataFrame, sample: int | None) -> Problem:
    """The fit of a law to its own losses at ``points``; from ``sample`` of its starts, or all."""
    law = laws.fittable(ref)
    assert law.published
    columns = {str(name): points[name].to_numpy(dtype=float) for name in points}
    noise = LOSS_NOISE * np.random.default_rng(0).standard_normal(len(points))
    response = law.predict(law.published, columns) * np.exp(noise)
    rows = Observations(columns=columns, response=response)
    return problem(law, rows, dataclasses.replace(law.protocol, sample=sample), seed=0)


def _fitted(
    task: Problem, threads: int, times: int = 1, beside: _Loop | None = None
) -> tuple[dict[str, Any], Solution]:
    """The fastest of so many fits: a short one meets with whatever else the machine does.

    The loop ``beside`` it takes turns with the fit; its time does not count as the fit's.
    """
    seconds, cpu = [], []
    with using_cores(threads), reporting(lines=False) as show:
        for turn in range(times):

            def shown(done: int, total: int, turn: int = turn) -> None:
                show(f"{task.law.id}, {turn + 1} of {times}", done, total)
                if beside is not None:
                    beside.advance(len(beside.starts) * done // total)

            began, cpu_began = time.perf_counter(), _cpu_seconds()
            solution = solve(task, 0, shown)
            seconds.append(time.perf_counter() - began - (sum(beside.times) if beside else 0))
            cpu.append(_cpu_seconds() - cpu_began - (sum(beside.cpu_times) if beside else 0))
    search = solution.search
    return {
        "rows": task.model.n,
        "starts": search.run,
        "threads": threads,
        "times": times,
        "seconds": min(seconds),
        "cpu_seconds": min(cpu),
        "objective": solution.value,
        "certified": solution.certificate.converged,
        "survived": search.survived,
        "reached": search.reached,
        "pruning_lost": search.pruning_lost,
        "peak_mb": peak_memory() / 1e6,
    }, solution


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


class _Loop:
    """SciPy's L-BFGS-B from one start (B, P) after another; the first ``TIMED`` are timed.

    ``unit`` divides the objective, ``options`` are SciPy's.
    """

    def __init__(
        self, task: Problem, starts: Array, unit: float = 1.0, options: Mapping[str, Any] = {}
    ) -> None:
        (self.objective,) = task.path()
        self.starts, self.bounds, self.options = starts, task.bounds, options
        self.function = value_and_gradient(self.objective, unit)
        self.times: list[float] = []
        self.cpu_times: list[float] = []
        self.ends: list[Array] = []

    def advance(self, count: int) -> None:
        """Goes on until ``count`` starts are done."""
        for start in self.starts[len(self.ends) : count]:
            began, cpu_began = time.perf_counter(), _cpu_seconds()
            self.ends.append(descend_from(self.function, start, self.bounds, self.options))
            self.times.append(time.perf_counter() - began)
            self.cpu_times.append(_cpu_seconds() - cpu_began)

    def numbers(self, total: int, optimum: float) -> dict[str, Any]:
        """The times, extrapolated to ``total`` starts, and how many came to the ``optimum``."""
        values = self.objective.value(np.array(self.ends))
        timed = len(self.times[:TIMED])
        return {
            "timed_starts": timed,
            "seconds": sum(self.times[:TIMED]),
            "seconds_extrapolated": sum(self.times[:TIMED]) * total / timed,
            "cpu_seconds_extrapolated": sum(self.cpu_times[:TIMED]) * total / timed,
            "starts": len(values),
            "best": float(values.min()),
            "reached": int((values <= optimum * (1 + REACHED)).sum()),
        }
