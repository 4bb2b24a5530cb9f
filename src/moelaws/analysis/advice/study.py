"""A small sweep as a study that can be run: its grid, and the fits that its runs allow."""

from collections.abc import Callable, Iterator

import pandas as pd
import yaml

from moelaws import laws
from moelaws.analysis.advice.sweeps import SmallSweep
from moelaws.fitting.caveats import require_identifiable
from moelaws.fitting.variables import read_variables, with_size
from moelaws.spec.advice import AdviceConfig
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.study import Simulation, Study
from moelaws.tables.schema import COLUMNS


def study_text(
    sweep: SmallSweep, name: str, config: AdviceConfig, runs_of: Callable[[Study], pd.DataFrame]
) -> str:
    """Returns the YAML of a study: the sweep's grid, and fits of the laws that its rows allow.

    ``runs_of`` returns a study's runs as a table has them before any training. How well they
    determine these laws is what `moelaws plan` tells. A UserError says that they allow no law with
    published values, which `plan` simulates.
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
    runs = runs_of(study).assign(L=1.0)  # which loss it is plays no part
    fits, left_out = [], {}
    for own in study.fits:
        law = laws.fittable(own.law)
        try:
            read = read_variables(law, runs, with_size(law, runs, own)).values
            require_identifiable(law, law.columns(read))
            fits.append(own)
        except UserError as error:
            left_out[own.name] = str(error)
    known = [own for own in fits if laws.fittable(own.law).published]
    if not known:
        raise UserError(
            f"--write-study: the sweep determines no law: {next(iter(left_out.values()))}; set "
            "other sizes or sparsities of sweep in config/advice.yaml"
        )
    simulation = Simulation(law=known[-1].law, mapping=known[-1].mapping)
    study = study.model_copy(update={"fits": tuple(fits), "simulation": simulation})
    regret = ", ".join(f"{nats:.3f} by {law}" for law, nats in sweep.regret.items())
    head = (
        f"# Written by `moelaws advise`: {sweep.runs} runs, {sweep.flops:.3g} FLOPs.\n"
        "# In 95 of 100 refits to losses that were simulated at these runs, the plan of the refit "
        f"cost at\n# most so many nats more than the best: {regret}.\n"
    )
    head += "".join(f"# Not fitted is {name}: {reason}.\n" for name, reason in left_out.items())
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
