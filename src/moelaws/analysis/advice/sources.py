"""The candidate laws: those of config/advice.yaml, and fits to a user's own runs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from moelaws import laws
from moelaws.analysis.advice.plans import COLUMNS
from moelaws.analysis.advice.regret import CandidateLaw, is_read
from moelaws.fitting.diagnostics import Support
from moelaws.fitting.prediction import product_range
from moelaws.fitting.report import FitReport, GroupFit, group_draws, read_fit
from moelaws.laws.base import FittableLaw
from moelaws.spec.advice import AdviceConfig, CandidateEntry
from moelaws.spec.errors import UserError

# Column -> its power in N_active / N; of S it is that of 1 / (1 - S).
_DENSER = {"S": -1.0, "A": 1.0, "expansion": -1.0}
EXPERTS = "E"  # a table's column; a plan has only E / k
# N is no column of a study's table. A user's N means what the file's entry maps the law's N to.
KNOWN = {EXPERTS, *COLUMNS} - {"N"}


def published_laws(config: AdviceConfig) -> list[CandidateLaw]:
    """Returns the file's candidate laws with published values."""
    each = ((entry, laws.fittable(entry.law)) for entry in config.candidate_laws)
    return [
        CandidateLaw(
            e.name or e.law, law, law.published, mapping=e.mapping, S=e.S, fitted_on=e.fitted_on
        )
        for e, law in each
        if law.published and set(law.published) >= set(law.names)
    ]


def fitted_laws(
    paths: Sequence[Path], config: AdviceConfig, top_k: Callable[[Path, FitReport], int | None]
) -> tuple[list[CandidateLaw], dict[Path, str]]:
    """Returns the candidate laws of fits, and resolved path -> why another fit takes no part.

    Args:
        paths: reports of fits, and folders that hold at least one, or whose folders do.
        config: the file, which names the laws that take part.
        top_k: returns the active experts of the runs behind a fit, from its file and report; laws
            that count experts need it.
    """
    reports: dict[Path, FitReport] = {}
    candidates, left_out = [], {}
    for path in paths:
        if not path.exists():
            raise UserError(f"--fits: {path}: no such file or folder")
        every = [*path.glob("*.json"), *path.glob("*/*.json")] if path.is_dir() else [path]
        own = {}
        for file in sorted(file.resolve() for file in every):
            try:
                own[file] = read_fit(file)
            except UserError as error:
                left_out[file] = str(error).removeprefix(f"{file}: ")
        if path.is_dir() and not own:
            raise UserError(f"--fits: {path} holds no report of a fit (FIT.json)")
        reports |= own
    for file, report in reports.items():
        try:
            k = top_k(file, report)
            candidates += [_of_fit(file, report, group, config, k) for group in report.parts]
        except UserError as error:
            left_out[file] = str(error).removeprefix(f"{file}: ")
    return _named(candidates), left_out


def _named(candidates: Sequence[CandidateLaw]) -> list[CandidateLaw]:
    """Returns the laws of fits, named by folder and file, or by the whole path if two agree."""
    paths = [Path(law.coefficients).with_suffix("") for law in candidates]
    ends = Counter("/".join(path.parts[-2:]) for path in set(paths))
    names = ["/".join(path.parts[-2:]) for path in paths]
    return [
        replace(law, name=(name if ends[name] == 1 else str(path)) + law.name)
        for law, name, path in zip(candidates, names, paths, strict=True)
    ]


def _of_fit(
    path: Path, report: FitReport, fitted: GroupFit, config: AdviceConfig, k: int | None
) -> CandidateLaw:
    """Returns the candidate law of a fit of one group; a UserError says why it is none."""
    entry = next((entry for entry in config.candidate_laws if entry.law == report.law), None)
    if entry is None:
        known = ", ".join(dict.fromkeys(entry.law for entry in config.candidate_laws))
        raise UserError(f"{report.law} is no candidate law of config/advice.yaml ({known})")
    if "simulated" in report.source:
        raise UserError("it is of simulated losses, which tell nothing of real models")
    law = laws.fittable(report.law)
    of_words = [value for value in fitted.where.values() if isinstance(value, str)]
    # A fit that is split by data sets is one law for each of them.
    if report.split_by and not of_words:
        raise UserError(f"it is split by {report.split_by}: it is not one law")
    if (unit := report.unit(law.response)) != law.response.unit:
        raise UserError(f"its losses are in {unit}, and plans are compared in {law.response.unit}")
    read = [v.name for v in law.variables if is_read(v, entry.mapping.get(v.name, v.name))]
    named = {name: report.spec.get("mapping", {}).get(name, name) for name in read}
    mapping, factors = _mapping(entry, named, k)
    ranges = fitted.hull.ranges if fitted.hull else {}
    fitted_on = {
        mapping[name]: (low / factors.get(name, 1.0), high / factors.get(name, 1.0))
        for name, (low, high) in ranges.items()
        if name in mapping
    }
    if compute := _compute(law, fitted.hull, mapping, factors):
        fitted_on["C"] = compute
    order = [list(fitted.params).index(name) for name in law.names]
    draws = group_draws(path, report, fitted)[:, order]
    candidate = CandidateLaw(
        # The data set's name stands behind the file's.
        "".join(f" ({value})" for value in of_words),
        law,
        fitted.estimates(),
        coefficients=str(path),
        mapping=mapping,
        factors=factors,
        renamed={named[name]: own for name, own in mapping.items() if named[name] not in KNOWN},
        S=entry.S if fitted.sparsity is None else fitted.sparsity,
        draws=draws,
        stretch=fitted.diagnostics.draws.stretch,
        fitted_on=fitted_on,
        source=report.source,
        warnings=tuple(fitted.warnings),
        determined=fitted.converged and not fitted.diagnostics.at_bounds,
        calibration=fitted.calibration,
    )
    # A law that a fit gave total parameters, say, recommends a sparsity of its own, not the file's.
    return replace(candidate, S=None) if candidate.knows_sparsity else candidate


def _mapping(
    entry: CandidateEntry, named: Mapping[str, str], k: int | None
) -> tuple[dict[str, str], dict[str, float]]:
    """Returns variable -> column of a plan, and variable -> the factor of that column.

    ``named`` is variable -> column of the fitted table. A column that no study's table has is named
    by the user, and means what the file's ``entry`` maps the variable to. A plan has E / k instead
    of E, so that its factor is k.
    """
    mapping, factors = dict(named), {}
    for variable, column in named.items():
        usual = entry.mapping.get(variable, variable)
        if column not in KNOWN:
            mapping[variable] = usual
        if column == EXPERTS or (column not in KNOWN and usual in (EXPERTS, "expansion")):
            if k is None:
                raise UserError(
                    f"its law reads {variable}, the experts of runs with k active ones, and k is "
                    "not known; `moelaws advise` takes it as --fits-top-k"
                )
            mapping[variable], factors[variable] = "expansion", float(k)
    return mapping, factors


def _compute(
    law: FittableLaw,
    support: Support | None,
    mapping: Mapping[str, str],
    factors: Mapping[str, float],
) -> tuple[float, float] | None:
    """Returns the least and the largest compute of a fit's runs, 6 N_active D.

    It is known if the law reads tokens and an active size, or tokens, a total size and a sparsity.
    """
    reads = {column: name for name, column in mapping.items()}
    if support is None or "D" not in reads:
        return None
    powers, factor, total = {reads["D"]: 1.0}, 6.0, reads.get("N", reads.get("N_total"))
    denser = next((column for column in _DENSER if column in reads), "")
    if "N_active" in reads:
        powers[reads["N_active"]] = 1.0
    elif total and denser:
        powers |= {total: 1.0, reads[denser]: _DENSER[denser]}
        factor *= factors.get(reads[denser], 1.0)
    else:
        return None
    low, high = product_range(law, support, powers)
    return factor * low, factor * high
