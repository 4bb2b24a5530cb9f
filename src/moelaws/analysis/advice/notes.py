"""What limits the trust in an answer, in sentences: printed by the command and set on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moelaws.analysis.advice.advise import Advice
from moelaws.analysis.advice.judges import Judge
from moelaws.analysis.advice.plans import USUAL_G
from moelaws.spec.model import Model, MoE

_EMBEDDED = 0.5  # of the active parameters: above it a configuration is hardly a model


def notes(answer: Advice) -> Iterator[str]:
    """Yields sentences on the configuration, the judges, the plans and what was left out."""
    if answer.configuration is None:
        yield f"There is no configuration: {answer.not_built}."
    elif answer.as_configured and answer.as_configured.worst > answer.robust.worst + 0.01:
        built = answer.configuration
        yield (
            "The configuration costs more than the robust plan. A plan takes all parameters to be "
            "experts, N to be N_active / (1 - S), and 6 N_active FLOPs a token; in the "
            f"configuration {100 * built.routed_share:.0f} % of the active parameters are routed "
            f"experts, and a token costs {built.flops_over_plan:.2f} times that."
        )
    if answer.as_configured:
        plan = answer.as_configured.plan
        embedded = float(plan.embeddings / plan.N_active)
        if embedded > _EMBEDDED:
            yield (
                f"Embeddings are {100 * embedded:.0f} % of the configuration's active parameters, "
                "more than the laws' models have; set vocab_size and tied_embeddings of shape in "
                "config/advice.yaml as your tokenizer and models have them."
            )
    for judge in answer.judges:
        yield from _of_judge(judge)
        if distances := answer.robust.beyond.get(judge.name):
            yield f"{judge.name} extrapolates to the robust plan: {_far(distances)}."
    if answer.far:
        each = "; ".join(f"{name} ({_far(distances)})" for name, distances in answer.far.items())
        yield f"Of the laws that judge nothing, these extrapolate: {each}."
    yield f"Defaults, which no law here sets: {', '.join(_defaults(answer))}."
    for row in answer.recommendations:
        if any(limit.startswith("the search") for limit in row.at_limits):
            yield f"{row.name} has no best size at this budget: its plan is where the search ends."
    if len(answer.court.counting) == 1:
        own = answer.judges[answer.court.counting[0]].name
        yield f"Only {own} counts for the worst case, so the robust plan is its own."
    if any(judge.coefficients == "published" for judge in answer.judges):
        yield "Published coefficients have no intervals, so neither have their regrets."
    for name, reason in answer.left_out.items():
        yield f"{name} takes no part: {reason}."


def shape_in_words(model: Model) -> str:
    """Returns layers, heads and experts of a configuration."""
    ffn = model.ffn
    if isinstance(ffn, MoE):
        experts = f"{ffn.n_experts} experts of width {ffn.d_expert}, {ffn.top_k} active"
        experts += f" and {ffn.n_shared} shared" if ffn.n_shared else ""
    else:
        experts = f"dense feed-forward layers of width {ffn.d_ffn}"
    return (
        f"{model.n_layers} layers of width {model.d_model}, {model.n_heads} heads "
        f"({model.n_kv} key-value), {experts}; vocabulary {model.vocab_size}"
    )


def settings_in_words(answer: Advice) -> str:
    """Returns what the laws of one variable set; empty where there are none."""
    c = answer.configuration
    told = {
        "lr": "peak learning rate {:.3g}",
        "B": "{:.3g} tokens a step",
        "G": "the largest leverage at granularity {:.3g}",
        "r_star": "r* = {:.3g}" + (f" (here {c.r:.3g})" if c else ""),
    }
    return "; ".join(
        told.get(name, f"{name} {{:.3g}}").format(value) for name, value in answer.set.items()
    )


def _defaults(answer: Advice) -> Iterator[str]:
    """Yields what the plans and the configuration have without any law's advice."""
    advised = [row.name for row in answer.recommendations[len(answer.judges) :]]
    without = [judge.name for judge in answer.judges if judge.S is not None] + advised
    for row in answer.recommendations:
        if row.name in without:
            yield f"S = {float(row.plan.S):.3g} for {row.name}"
    if answer.configuration:
        model = answer.configuration.model
        if isinstance(model.ffn, MoE):
            if answer.limits.G is None and "G" not in answer.set:
                yield f"granularity {USUAL_G:g}"
            yield f"shared experts {model.ffn.n_shared}"
        yield f"context {model.context}"
        yield f"vocabulary {model.vocab_size}"
    else:
        yield "the shape in config/advice.yaml"


def _far(distances: Mapping[str, float]) -> str:
    return ", ".join(f"{name} by {decades(x)}" for name, x in distances.items())


def decades(distance: float) -> str:
    """Returns a distance in words, to two digits."""
    return f"{distance:.0f} decades" if distance >= 9.95 else f"{distance:#.2g} decades"


def _of_judge(judge: Judge) -> Iterator[str]:
    if judge.renamed:
        taken = ", ".join(f"{own} as {column}" for own, column in judge.renamed.items())
        yield f"{judge.name} takes columns of its fitted table by their variables: {taken}."
    if not judge.determined:
        yield (
            f"{judge.name} does not count for the worst case: its fit did not converge, or a "
            "coefficient is at its bound."
        )
    if judge.warnings:
        undetermined = [text for text in judge.warnings if "do not identify" in text]
        first = (undetermined or list(judge.warnings))[0]
        more = len(judge.warnings) - 1
        others = f" (its report has {more} more warning{'s' * (more > 1)})" if more else ""
        yield f"{judge.name}: {first}{others}."
