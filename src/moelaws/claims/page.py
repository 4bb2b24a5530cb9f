"""The pages of verdicts on claims and of contests between laws."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from moelaws.claims.base import (
    EFFECT,
    FITTED,
    NOMINAL,
    NULL,
    PUBLISHED,
    Counts,
    JudgedClaim,
    JudgedStudy,
    Tried,
    Verdict,
)
from moelaws.claims.registration import KEPT
from moelaws.files.atomic import read_json
from moelaws.fitting.report import ContestScores, LawScore, SplitScores
from moelaws.spec.base import as_written
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Contest
from moelaws.spec.words import counted, joined, without_tags

# What a file holds -> the words for it, and the command that writes it
_HELD: dict[type, tuple[str, str]] = {
    JudgedStudy: ("verdicts", "make claims STUDY"),
    Tried: ("verdicts on simulated tables", "make power STUDY"),
    ContestScores: ("contest", "make contests STUDY NAME"),
}
Judged = TypeVar("Judged", JudgedStudy, Tried, ContestScores)
# Begin and end what a reader unfolds; the attribute is for MkDocs.
UNFOLD = '<details markdown="1"><summary>Numbers, rule and trials</summary>'
FOLDED = "</details>"
USABLE = 0.05  # nats/token: the largest error at which a law is one to use


def read_judged(held: type[Judged], path: Path) -> Judged:
    """Returns what `moelaws make` wrote of this kind; a UserError refuses all else."""
    try:
        judged = as_written(held, data := read_json(path))
        if held is ContestScores:
            Contest.model_validate(data["entry"])
    except ValidationError:
        words, command = _HELD[held]
        raise UserError(f"{path} holds no {words}; `moelaws {command}` writes them") from None
    return judged


def page(verdicts: Sequence[JudgedStudy], tier: str, powers: Mapping[str, Tried] = {}) -> str:
    """Returns the Markdown of judged studies, whose grids are of a ``tier``.

    ``powers`` has the verdicts of the rules of some of the studies on simulated tables.
    """
    rows = ["| study | claim | verdict | effect | interval | without the effect | with it |"]
    rows.append("|-|-|-|-|-|-|-|")
    sections = []
    for study in verdicts:
        key, power = study["study"], powers.get(study["study"])
        runs = basis(study["source"], study["runs"])
        if "stages" in study:
            runs += f" The runs are those of the stages {study['stages']}."
        sections += [f"## {key}", f"{study['title']}. {runs}"]
        sections += [f"Assumed: {study['assumed']}"] if study["assumed"] else []
        sections.append(" ".join(filter(None, [_by_chance(study, power), _registration(study)])))
        if power:
            sections[-1] += (
                f" Its rules were tried on runs of this grid, with {power['tables']} simulated "
                f"tables for each law and a noise of {power['noise']:.2%} ({power['noise_of']})."
                + _of_losses(power)
            )
        for claim in study["claims"]:
            own = _counts(claim, power)
            rates = [_rate(own.get(law)) for law in (NULL, FITTED)]
            cells = [_named(claim), claim["verdict"], *claim["shown"], *rates]
            rows.append(f"| [{key}](#{key}) | {' | '.join(cells)} |")
            sections += _section(claim, Path("figures") / key, _tried(claim, own))
    blocks = [
        f"# Claims beside these runs ({tier} tier)",
        "Each verdict is computed by the rule that stands below it from the tables and fits of "
        "this tier; intervals are 90 % unless a line says otherwise. *Cannot tell* is a result: "
        "the runs are too few, too small or too noisy for the rule. The last two columns say how "
        "often the rule supports its claim on simulated tables of such runs: where the effect is "
        "not there, and where it is there as fitted to these runs.",
        "\n".join(rows),
        "What to remember:",
        "\n".join(f"- *{study['study']}*: {to_remember(study)}" for study in verdicts),
        *sections,
    ]
    # What studies say has no tags; those that fold a claim's numbers are the page's own.
    folds = (UNFOLD, FOLDED)
    return "\n\n".join(x if x in folds else without_tags(x) for x in blocks) + "\n"


def to_remember(study: JudgedStudy) -> str:
    """Returns what to remember of a study: its clearest verdicts, in one sentence."""
    says = []
    for decision, verb in ((Verdict.SUPPORTED, "supports"), (Verdict.NOT_SUPPORTED, "contradicts")):
        if own := [claim for claim in study["claims"] if claim["verdict"] == decision]:
            clearest = max(own, key=lambda claim: claim["clearance"] or 0.0)
            clearly = " most clearly" if len(own) > 1 else ""
            says.append(f'{verb}{clearly} that "{clearest["statement"].rstrip(".")}"')
    left = sum(claim["verdict"] == Verdict.CANNOT_TELL for claim in study["claims"])
    says.append(f"leaves {left} of {counted(len(study['claims']), 'claim')} open")
    return f"the evidence {joined(says)}."


def _by_chance(study: JudgedStudy, power: Tried | None) -> str:
    """Returns a sentence that says how many claims would be supported by chance."""
    claims = study["claims"]
    supported = sum(claim["verdict"] == Verdict.SUPPORTED for claim in claims)
    counts = [_counts(claim, power).get(NULL) for claim in claims]
    known = sum(map(bool, counts))
    chance = sum(c[Verdict.SUPPORTED] / sum(c.values()) if c else NOMINAL for c in counts)
    how = f"by the level of its interval, {NOMINAL:.0%} for each"
    if known:
        how = f"{counted(known, 'rule')} by simulation, the others by {NOMINAL:.0%} for each"
    return (
        f"The runs support {supported} of these {counted(len(claims), 'claim')}. If none of the "
        f"effects were there, some {chance:.1f} would be supported by chance ({how})."
    )


def _registration(study: JudgedStudy) -> str:
    """Returns how many claims were preregistered, and how well losses were predicted before."""
    states = [own for claim in study["claims"] if (own := claim.get("registered"))]
    if not any(own["digest"] for own in states):
        return ""
    digest, day = next((own["digest"][:16], own["time"][:10]) for own in states if own["digest"])
    kept = sum(own["state"] == KEPT for own in states)
    text = f"{kept} of {counted(len(states), 'claim')} were preregistered, by {digest} of {day}."
    for one in study.get("predicted", []):
        text += (
            f" Of {one['losses']} losses that {one['law']} predicted before, {one['inside']} lie "
            f"in their {one['level']:.0%} intervals, and the error is {one['rmse']:.3g} nats."
        )
    return text


def _of_losses(power: Tried) -> str:
    """Returns sentences on the losses of simulated runs, and on the laws that were left out."""
    ranges = [
        f"{least:.3g} to {largest:.3g} by the {key} law"
        for key, (least, largest) in power["losses"].items()
    ]
    said = f" Before noise, their losses are {joined(ranges)}." if ranges else ""
    return said + "".join(f" A law was left out: {why}." for why in power["refused"])


# Law that gave the losses of simulated tables -> the words for its effect in them
_WITH = {
    FITTED: "*With the effect* of the law that was fitted to these runs",
    PUBLISHED: "*With the published effect*, brought to the scale of these runs",
    EFFECT: "*With the effect* that the study states",
}
_LACKED = " At these sizes and budgets the published law itself may not have the effect."


def _tried(claim: JudgedClaim, own: Mapping[str, Counts]) -> list[str]:
    """Returns lines that say what the claim's rule says of simulated tables: law -> verdicts."""
    lines = []
    for law, words in _WITH.items():
        if effect := own.get(law):
            refuted = effect[Verdict.NOT_SUPPORTED] > effect[Verdict.SUPPORTED]
            lacked = _LACKED if law == PUBLISHED and refuted else ""
            lines.append(f"- {words}: the rule {_says(effect)}.{lacked}")
    if says := claim["null"]:
        lines.append(f"- *Without the effect*: {says}")
        if null := own.get(NULL):
            lines[-1] += f" There the rule {_says(null)}."
    return lines


def _counts(claim: JudgedClaim, power: Tried | None) -> dict[str, Counts]:
    """Returns the verdicts on a claim by law, in simulated tables; {} if no rule was tried."""
    return power["claims"].get(claim["name"], {}) if power else {}


def _says(counts: Mapping[str, int]) -> str:
    against = counts[Verdict.NOT_SUPPORTED]
    text = f"supports the claim in {_rate(counts)} simulated tables"
    return f"{text} and says that it is not supported in {against}" if against else text


def basis(source: str, runs: str) -> str:
    """Returns a sentence that says where losses come from; ``runs`` names imported ones."""
    if source == "computed":
        return "Computed from the study's own model; no run is behind it."
    if source == "trained":
        return "From runs trained here."
    if source == "imported" and runs:
        return f"**From {runs}**; none was trained here."
    return f"**From {source.replace('+', ' and ')} data**, not from trainings here alone."


def _section(claim: JudgedClaim, figures: Path, tried: Sequence[str]) -> list[str]:
    """Returns the blocks of a claim: a sentence to read, and the numbers behind it to unfold."""
    figure = figures / claim["figure"]
    picture = figure.with_suffix(".md" if claim["figure"].startswith("T") else ".png")
    numbers = [
        f"- *These runs*: {claim['measured'].rstrip('.')}.",
        f"- *Rule*: {claim['rule']}",
        *_kept(claim),
        *tried,
        f"- *Look at*: [{claim['figure']}]({picture.as_posix()})",
    ]
    blocks = [
        f"### {_named(claim)}",
        claim["says"],
        f"*The claim* ({claim['source']}): {claim['statement']}",
    ]
    if claim["needed"]:
        blocks.append(f"*What would decide*: {claim['needed'].rstrip('.')}.")
    return [*blocks, UNFOLD, "\n".join(numbers), FOLDED]


def _kept(claim: JudgedClaim) -> list[str]:
    """Returns lines that say how the claim kept to its registration."""
    if not (own := claim.get("registered")):
        return []
    deviations = "".join(f"\n    - {one}" for one in own["deviations"])
    return [f"- *Registration*: {own['state']}{deviations}"]


def _named(claim: JudgedClaim) -> str:
    return claim["name"].replace("_", " ")


def _rate(counts: Mapping[str, int] | None) -> str:
    return f"{counts[Verdict.SUPPORTED]} of {sum(counts.values())}" if counts else ""


def contests_page(contests: Sequence[ContestScores], tier: str) -> str:
    """Returns the Markdown of judged contests; it begins with the law to use for each purpose."""
    head = (
        "| to predict | runs | best | error (nats/token) | not told apart from it | beforehand |\n"
        "|-|-|-|-:|-|-|"
    )
    blocks = [
        f"# Which law to use ({tier} tier)",
        "Every law is fitted to the same runs. Then it predicts other runs, which no law was "
        "fitted to. The error is the root mean square of predicted less measured loss, in nats a "
        "token. Intervals draw the judged runs anew and take the refits of each law to runs drawn "
        "anew; such a refit predicts a little worse than the fit itself. Two laws are *not told "
        "apart* where the interval of the difference of their errors holds zero. A law marked "
        "*reduced* lost the parameters of variables that are the same in all runs: its equation "
        "stands below. In the other tables, *above the best* is the interval of how much larger "
        "the error is than that of the first law, and *first* is the share of the draws in which "
        "the law is the best one. *R2 of x* says that some judged runs agree in all columns that "
        "the law reads and differ in loss, so that no function of these columns has an R2 above x. "
        "The best law is the best after the fact: the runs that judge it "
        "chose it among all, so that its error flatters. *Beforehand* names laws that were fixed "
        "or chosen without these runs. *No law is usable* where the least error is above "
        f"{USABLE:g} nats a token: differences between models are mostly smaller. A first call at "
        "the tier demo judges fewer laws, and by fewer refits, than a call with "
        "`--config contests=all`.",
        "\n".join([head, *(_advice(each, split) for each in contests for split in each["splits"])]),
    ]
    for each in contests:
        runs, entry = basis(each["source"], each["runs"]), Contest.model_validate(each["entry"])
        blocks += [f"## {each['study']}: {each['contest'].replace('_', ' ')}"]
        blocks += [f"{each['title']}. {runs}", _fitted(entry, each["seed"])]
        for split in each["splits"]:
            blocks += _split_section(split, entry)
            for how, law in _beforehand(each, split).items():
                r2 = "" if law["r2"] is None else f" and R2 {law['r2']:.3f}"
                blocks.append(f"`{law['law']}`, {how}, has the error {law['rmse']:.4f}{r2}.")
        laws = "The laws as fitted:\n"
        for law in {law["law"]: law for split in each["splits"] for law in split["laws"]}.values():
            read = [f"{name} from column {column}" for name, column in law["columns"].items()]
            variables = ", ".join([*read, *law["derived"]])
            laws += f"\n- `{law['law']}`: `{law['equation']}`, with {variables}"
        blocks.append(laws)
    return without_tags("\n\n".join(blocks) + "\n")


def _beforehand(each: ContestScores, split: SplitScores) -> dict[str, LawScore]:
    """Returns the scores of laws that the judged runs did not choose, by how they were chosen."""
    entry = Contest.model_validate(each["entry"])
    chosen_by = {one.name: one.chosen_by for one in entry.splits}[split["name"]]
    before = next((one["laws"] for one in each["splits"] if one["name"] == chosen_by), [])
    refs = {"fixed before any law was judged": entry.beforehand}
    if before:
        refs[f"chosen by the split {chosen_by}, which has none of these runs"] = before[0]["law"]
    by_ref = {law["law"]: law for law in split["laws"]}
    return {how: by_ref[ref] for how, ref in refs.items() if ref in by_ref}


def _advice(each: ContestScores, split: SplitScores) -> str:
    runs = f"[{each['study']}](#{each['study']}-{each['contest'].replace('_', '-')})"
    if not split["laws"]:
        return f"| {split['use']} | {runs} | no law could be judged | | | |"
    (best, *others), beforehand = split["laws"], _beforehand(each, split).values()
    cells = (
        split["use"],
        runs,
        f"`{best['law']}`"
        if best["rmse"] <= USABLE
        else f"no law is usable; least: `{best['law']}`",
        f"{best['rmse']:.4f} {_ends(best.get('rmse_interval'))}".strip(),
        ", ".join(f"`{law['law']}`" for law in others if not law.get("told_apart", False))
        or "none",
        ", ".join(f"`{law['law']}` {law['rmse']:.4f}" for law in beforehand) or "none",
    )
    return f"| {' | '.join(cells)} |"


def _fitted(entry: Contest, seed: int) -> str:
    """Returns sentences that say how the laws were fitted."""
    stated = entry.protocol
    own = stated.get("objective")
    objective = f"the objective `{own}`" if own else "its own objective"
    threshold = f" (delta {stated['delta']})" if "delta" in stated else ""
    starts = "all of its starts"
    if stated.get("sample"):
        starts = f"{stated['sample']} of its starts, or all where it has fewer"
    rows = f"Runs with {entry.rows} take part. " if entry.rows else ""
    together = few = ""
    if entry.resample_by:
        together = f", all runs of one {entry.resample_by} together"
        few = (
            f" Where few values of {entry.resample_by} are fitted, some draws hold one or two of "
            "them alone. Such runs hardly determine a law, so that the intervals are wide."
        )
    return (
        f"{rows}Each law was fitted by {objective}{threshold}, from {starts}. Its "
        f"intervals rest on {entry.bootstrap:,} refits to runs drawn anew{together} (seed "
        f"{seed}).{few}"
    )


def _split_section(split: SplitScores, entry: Contest) -> list[str]:
    percent = f"{entry.level:.0%}"
    steps = [
        f"{step['holdout']} ({step['fitted']} runs fitted, {step['judged']} judged)"
        for step in split["steps"]
    ]
    rows = f"Runs judged: {', '.join(steps)}." if steps else "No law could be judged."
    if len(steps) > 1:
        rows = f"A roll-out in {len(steps)} rounds, all counted together: {', '.join(steps)}."
    blocks = [f"### {split['name'].replace('_', ' ')}: to predict {split['use']}", rows]
    if split["laws"]:
        head = (
            f"| law | parameters | error (nats/token) | interval ({percent}) | above the best | R2 "
            f"| rank ({percent}) | first |\n|-|-:|-:|-|-|-:|-|-:|"
        )
        blocks.append("\n".join([head, *map(_score, split["laws"])]))
    if split["blocks"] == 1:
        blocks.append(
            f"All judged runs have one {entry.resample_by} and are drawn one by one: the intervals "
            "do not cover the error that these runs have in common."
        )
    if split["refused"]:
        refused = (f"- `{law}`: {reason}" for law, reason in split["refused"].items())
        blocks += ["Not judged:", "\n".join(refused)]
    return blocks


def _score(law: LawScore) -> str:
    ranks, top = law.get("rank_interval"), law.get("ceiling")
    infinite = "+infinite" if law.get("told_apart") else "-infinite", "+infinite"
    excess = _ends(law.get("rmse_excess_interval"), "+.4f", infinite)
    cells = (
        f"`{law['law']}`" + ("" if law["converged"] else " (not converged)"),
        str(law["parameters"]),
        f"{law['rmse']:.4f}",
        _ends(law.get("rmse_interval")),
        excess if law["rmse_excess"] else "",
        "" if law["r2"] is None else f"{law['r2']:.3f}" + (f" of {top:.3f}" if top else ""),
        str(law["rank"]) + (f" [{ranks[0]}, {ranks[1]}]" if ranks else ""),
        f"{law['first']:.0%}" if "first" in law else "",
    )
    return f"| {' | '.join(cells)} |"


def _ends(
    ends: Sequence[float | None] | None,
    form: str = ".4f",
    infinite: Sequence[str] = ("infinite",) * 2,
) -> str:
    pairs = zip(ends or (), infinite, strict=False)
    texts = [word if end is None else f"{end:{form}}" for end, word in pairs]
    return f"[{', '.join(texts)}]" if texts else ""
