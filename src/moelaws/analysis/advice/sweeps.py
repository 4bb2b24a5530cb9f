"""Which small sweep would tell most: candidate grids, what they cost, and what refits would give.

Each judge in turn is the truth: the sweep's losses are simulated by it, refitted with resampled
rows, and the plan of each refit is judged by the truth. `moelaws plan` does the same at length, for
every fit of a study and from all starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import yaml

from moelaws import laws
from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.analysis.advice.build import as_plans
from moelaws.analysis.advice.judges import Judge, drawn_optima
from moelaws.analysis.advice.plans import Plans
from moelaws.analysis.advice.regret import LEVEL, Court
from moelaws.fitting.descent import descend
from moelaws.fitting.objective import Objective
from moelaws.laws.base import Array
from moelaws.spec.advice import AdviceConfig, SweepEntry
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.model import Model, MoE
from moelaws.spec.study import Study
from moelaws.tables.schema import COLUMNS

_SPREAD = (0.4, 0.63, 1.0, 1.6, 2.5)  # sizes of a budget, over the judges' mean best there
_DRAWS, _STEPS = 50, 40  # refits, and steps of each from the truth


Sizes = tuple[tuple[int, int], ...]  # (layers, width) of each


@dataclass(frozen=True)
class Candidate:
    """A small sweep, and what it is expected to give.

    Attributes:
        name: its budgets, in FLOPs.
        budgets: FLOPs of its runs, rising.
        shapes: budget -> (layers, width) of its sizes.
        runs: number of them.
        flops: training FLOPs of all, by the sparsity paper's convention.
        regret: judge -> nats that the plan of a refit costs at most, in 95 of 100 refits, if that
            judge is the truth.
        worst: the largest of these regrets over the judges that count.
    """

    name: str
    budgets: tuple[float, ...]
    shapes: Mapping[float, Sizes]
    runs: int
    flops: float
    regret: Mapping[str, float]
    worst: float


def candidates(court: Court, entry: SweepEntry) -> list[Candidate]:
    """Returns the candidate sweeps of the file, the one that tells most first.

    A budget at which less than three models of the settings can be trained is left out, and a
    candidate of less than two budgets with it.
    """
    ladder = _dense_models(entry)
    budgets = sorted({share for shares in entry.candidates for share in shares})
    shapes = {share: _shapes(court, entry, ladder, share) for share in budgets}
    every = [_candidate(court, entry, shares, shapes) for shares in entry.candidates]
    unlike = {candidate.budgets: candidate for candidate in every if candidate}
    return sorted(unlike.values(), key=lambda candidate: candidate.worst)


def _candidate(
    court: Court, entry: SweepEntry, shares: Sequence[float], sizes_of: Mapping[float, Sizes]
) -> Candidate | None:
    models, tokens, shapes = [], [], {}
    for share in sorted(shares):
        C, sizes = share * court.limits.compute, sizes_of[share]
        if len(sizes) < 3:
            continue
        shapes[C] = sizes
        for model in (_model(entry, *size, S) for size in sizes for S in entry.sparsities):
            models.append(model)
            tokens.append(C / train_flops_per_token(model, "sparsity"))
    if len(shapes) < 2:
        return None
    runs = as_plans(models, [count_parameters(model) for model in models], tokens)
    regret = {judge.name: _regret(court, i, runs, entry) for i, judge in enumerate(court.judges)}
    total = sum(C * len(sizes) * len(entry.sparsities) for C, sizes in shapes.items())
    name = ", ".join(f"{C:.2g}" for C in shapes)
    worst = max(regret[court.judges[i].name] for i in court.counting)
    return Candidate(name, tuple(shapes), shapes, len(models), total, regret, worst)


def _dense_models(entry: SweepEntry) -> dict[tuple[int, int], int]:
    """Returns (layers, width) -> active parameters, of widths that two heads divide."""
    unit = 2 * entry.head_width
    sizes = [(max(2, round(d / entry.width_per_layer)), d) for d in range(unit, 8192, unit)]
    return {size: count_parameters(_model(entry, *size, 0.0)).active for size in sizes}


def _shapes(
    court: Court, entry: SweepEntry, ladder: Mapping[tuple[int, int], int], share: float
) -> Sizes:
    """Returns sizes around the judges' best at a share of the budget, that it can train."""
    C = share * court.limits.compute
    limits = replace(court.limits, compute=C, served_tokens=0.0)
    try:
        best = [math.log(judge.best(limits).N_active) for judge in court.judges]
    except UserError:  # so small a share pays for no model at all
        return ()
    target = math.exp(sum(best) / len(best))
    sizes, active = list(ladder), np.array(list(ladder.values()))
    nearest = [int(np.argmin(np.abs(np.log(active / (target * x))))) for x in _SPREAD]
    steps = C / (6 * active * entry.step_tokens)
    return tuple(sizes[i] for i in dict.fromkeys(nearest) if steps[i] >= entry.min_steps)


def _model(entry: SweepEntry, n_layers: int, d: int, S: float) -> Model:
    """Returns the run's model, as the study's grid derives it."""
    settings = entry.settings
    k, G = settings.top_k or 2, settings.G or 1.0
    return Model(
        n_layers=n_layers,
        d_model=d,
        n_heads=d // entry.head_width,
        n_kv=d // entry.head_width,
        context=settings.context or 1024,
        vocab_size=settings.vocab_size or 16384,
        tied_embeddings=bool(settings.tied_embeddings),
        ffn=MoE(kind="moe", n_experts=round(k / (1 - S)), top_k=k, d_expert=int(2 * d / G)),
    )


def _regret(court: Court, i: int, runs: Plans, entry: SweepEntry) -> float:
    """Returns the end of the interval of what the plan of a refit costs under judge ``i``."""
    judge = court.judges[i]
    drawn = replace(judge, draws=_refits(judge, runs, entry.noise))
    try:
        optima = drawn_optima(drawn, court.limits)
    except UserError:  # a refit went where its law gives no loss: such a sweep tells nothing
        return math.inf
    excess = judge.loss(optima.plans) - court.least[i]
    return float(np.quantile(np.maximum(excess, 0.0), 0.5 + LEVEL / 2))


def _refits(judge: Judge, runs: Plans, noise: float) -> Array:
    """Returns draws (B, P), natural scale, of refits to resampled losses of simulated ``runs``.

    The losses are the judge's own with ``noise`` of ln L. Refits start from the judge's own
    coefficients and minimise squares of ln L.
    """
    law, rng = judge.law, np.random.default_rng(0)
    model = law.model(judge.columns(runs))
    theta = law.vector(judge.params)
    losses = model.evaluate(theta[None])[0][0] + noise * rng.standard_normal(model.n)
    counts = rng.multinomial(model.n, np.full(model.n, 1 / model.n), size=_DRAWS).astype(float)
    objective = Objective(model, losses, np.inf, counts, unit=2.0)
    ends, _ = descend(objective, np.tile(theta, (_DRAWS, 1)), law.bounds, _STEPS)
    return law.natural(ends)


def study_of(candidate: Candidate, name: str, config: AdviceConfig) -> Study:
    """Returns the candidate as a study: its grid, and fits of the judges that its table can feed.

    Raises:
        UserError: for a ``name`` that is no key of a study.
    """
    entry = config.sweep
    settings = entry.settings.model_dump(mode="json", exclude_none=True)
    sweeps = [
        {
            "axes": {"C": float(f"{C:.6g}"), "S": list(entry.sparsities)},
            "zip": [{"n_layers": [n for n, _ in sizes], "d_model": [d for _, d in sizes]}],
        }
        for C, sizes in candidate.shapes.items()
    ]
    fits, simulation = [], None
    for judge in config.judges:
        law = laws.fittable(judge.law)
        mapping = {v.name: judge.mapping.get(v.name, v.name) for v in law.variables} | {"L": "L"}
        if set(mapping.values()) <= {column.name for column in COLUMNS}:
            fits.append({"name": law.ref.replace(".", "_"), "law": law.ref, "mapping": mapping})
            if law.published:  # what `moelaws plan` simulates unless it is told another law
                simulation = {"law": law.ref, "mapping": mapping}
    data = {
        "study": name,
        "title": f"A sweep for advice: {candidate.runs} runs at {len(candidate.budgets)} budgets",
        "grids": {
            entry.tier: {
                "settings": settings,
                "derive": entry.derive.model_dump(mode="json", exclude_none=True),
                "sweeps": sweeps,
            }
        },
        "fits": fits,
        "simulation": simulation,
    }
    return parse(Study, data, "--write-study")


def study_text(study: Study, candidate: Candidate) -> str:
    """Returns the study's YAML file."""
    regret = ", ".join(f"{nats:.3f} by {name}" for name, nats in candidate.regret.items())
    head = (
        f"# Written by `moelaws advise`: {candidate.runs} runs, {candidate.flops:.3g} FLOPs.\n"
        "# In 95 of 100 refits to losses that were simulated at these runs, the plan of the refit "
        f"cost at\n# most so many nats more than the best: {regret}.\n"
    )
    return head + yaml.safe_dump(
        study.model_dump(mode="json", exclude_defaults=True),
        sort_keys=False,
        default_flow_style=None,
        width=100,
    )
