"""A small sweep as a study that can be run: its grid, and the fits that its runs determine."""

from collections.abc import Callable, Iterator, Mapping

import pandas as pd
import yaml

from moelaws import laws
from moelaws.analysis.advice.sweeps import SmallSweep
from moelaws.analysis.remake import with_starts
from moelaws.fitting.fit import fit
from moelaws.spec.advice import AdviceConfig
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.study import Simulation, Study
from moelaws.tables.schema import COLUMNS
from moelaws.tables.simulate import simulate

_TRIALS, _STARTS = 3, 20  # simulated tables that a fit is tried on, and starts of each trial


def study_text(
    sweep: SmallSweep, name: str, config: AdviceConfig, runs_of: Callable[[Study], pd.DataFrame]
) -> str:
    """Returns the YAML of a study: the sweep's grid, and fits of the laws that it determines.

    ``runs_of`` returns a study's runs as a table has them before any training. A UserError says
    that the sweep determines no law.
    """
    entry = config.sweep
    grid = {
        "settings": entry.settings.model_dump(mode="json", exclude_none=True),
        "derive": entry.derive.model_dump(mode="json", exclude_none=True),
        "sweeps": [
            {
                "axes": {"C": float(f"{C:.6g}"), "S": list(entry.sparsities)},
                "zip": [{"n_layers": [n for n, _ in sizes], "d_model": [d for _, d in sizes]}],
            }
            for C, sizes in sweep.shapes.items()
        ],
    }
    title = f"A sweep for advice: {sweep.runs} runs at {len(sweep.budgets)} budgets"
    data = {"study": name, "title": title, "grids": {entry.tier: grid}}
    study = parse(Study, data | {"fits": [*_possible(config)]}, "--write-study")
    runs = runs_of(study)
    left_out = {own.name: _undetermined(own, study.fits, runs, entry.noise) for own in study.fits}
    fits = tuple(own for own in study.fits if not left_out[own.name])
    known = [own for own in fits if laws.fittable(own.law).published]
    if not known:
        raise UserError(
            f"--write-study: the sweep determines no law: {next(iter(left_out.values()))}; set "
            "other sizes or sparsities of sweep in config/advice.yaml"
        )
    # What `moelaws plan` simulates by default.
    simulation = Simulation(law=known[-1].law, mapping=known[-1].mapping)
    study = study.model_copy(update={"fits": fits, "simulation": simulation})
    regret = ", ".join(f"{nats:.3f} by {law}" for law, nats in sweep.regret.items())
    head = (
        f"# Written by `moelaws advise`: {sweep.runs} runs, {sweep.flops:.3g} FLOPs.\n"
        "# In 95 of 100 refits to losses that were simulated at these runs, the plan of the refit "
        f"cost at\n# most so many nats more than the best: {regret}.\n"
        f"# Each fit below was tried on {_TRIALS} tables of simulated losses.\n"
    )
    head += "".join(f"# Not fitted is {n}: {reason}.\n" for n, reason in left_out.items() if reason)
    plain = study.model_dump(mode="json", exclude_defaults=True)
    return head + yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=100)


def _possible(config: AdviceConfig) -> Iterator[dict[str, object]]:
    """Yields a fit of each candidate law whose variables are columns of a study's table."""
    for candidate in config.candidate_laws:
        law = laws.fittable(candidate.law)
        mapping = {v.name: candidate.mapping.get(v.name, v.name) for v in law.variables}
        mapping["L"] = "L"
        if set(mapping.values()) <= {column.name for column in COLUMNS}:
            yield {"name": law.ref.replace(".", "_"), "law": law.ref, "mapping": mapping}


def _undetermined(entry: Fit, others: tuple[Fit, ...], runs: pd.DataFrame, noise: float) -> str:
    """Returns why most fits to simulated losses of the ``runs`` would not count; empty if they do.

    The losses are the law's own or, where it has no published values, those of another law.
    """
    law = laws.fittable(entry.law)
    published = (o for o in (entry, *others) if laws.fittable(o.law).published)
    truth = entry if law.published else next(published, None)
    if truth is None:
        return "no law here has published values to simulate losses with"
    own = laws.fittable(truth.law)
    quick = with_starts(entry, _STARTS).model_copy(update={"intervals": "none"})
    reasons = []
    for seed in range(_TRIALS):
        mapping: Mapping[str, str] = truth.mapping
        table = simulate(runs, own, own.published or {}, mapping=mapping, noise=noise, seed=seed)
        try:
            (fitted,) = fit(law, table.frame, quick).parts
        except UserError as error:
            return str(error)
        if bounds := fitted.diagnostics.at_bounds:
            reasons.append(f"with simulated losses {', '.join(bounds)} ended at a bound")
        elif not fitted.converged:
            reasons.append("fits to simulated losses did not converge")
    return reasons[0] if 2 * len(reasons) > _TRIALS else ""
