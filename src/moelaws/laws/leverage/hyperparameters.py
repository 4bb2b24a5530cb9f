"""Learning rate and batch over compute, for mixtures of experts (leverage paper, Eq 5)."""

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, Formula, Law, Parameter, Variable
from moelaws.laws.forms import power_law
from moelaws.laws.terms import Term, times
from moelaws.laws.vocabulary import variable

# Over C in FLOP: the peak learning rate, and the batch in tokens.
LR = {"coefficient": 1.1576, "exponent": -0.1529}
BATCH = {"coefficient": 0.0694, "exponent": 0.3644}

_C = variable("C", "training compute, without logits")
PEAK = Variable("lr", "1", "peak learning rate of AdamW")
BATCH_SIZE = Variable("B", "tokens", "tokens an optimizer step")
OUTPUTS = (PEAK, BATCH_SIZE, Variable("B_sequences", "sequences", "sequences an optimizer step"))
CONTEXT = Variable("context", "tokens", "sequence length, for B_sequences", default=float("nan"))
_TABLES = (
    "R (Tables 8-15): the paper's own grids do not follow Eq 5: for the six sizes their learning "
    "rates are .825, .841, .857, .867, .889 and .909 of it, their batches (in sequences of 4096) "
    "1.240, 1.246, 1.246, 1.253, 1.254 and 1.258. Reproductions take the tables."
)
_TOKENS = (
    "R (Eq 5): printed without a unit of B; tokens, for then B / 4096 spans the searched 64 to "
    "512 sequences: 39.6 to 490.8 at C = 3e17 to 3e20."
)
_EDGE = (
    "R (App E.1): the learning rates searched end at 2^-9 = 1.95e-3, below the law's own value at "
    "the least compute searched, 2.46e-3 at 3e17."
)
_TABLE_12 = (
    "E1.7 (Table 12): printed: learning rates 9.5e-3, 8.1e-3 and 7.0e-3 for the three largest "
    "sizes; corrected: e-4, about the law's; as printed they are ten times too large."
)


def over_compute(C: Variable, unit: str, coefficient: float, exponent: float) -> Term:
    """Returns the term ``coefficient * C^exponent`` in ``unit``, with its published values."""
    unit = f"{'' if unit == '1' else unit + ' '}FLOP^-exponent"
    return Term(
        Parameter("coefficient", unit, 1e-40, 1e40, "value at 1 FLOP", "log", coefficient),
        (times(C, "exponent", exponent, "exponent of compute", bounds=(-4.0, 4.0)),),
    )


VARIANTS: dict[str, Law] = {
    variant: power_law(
        over_compute(_C, result.unit, **law),
        id="leverage.hyperparameters",
        variant=variant,
        title=f"Best {name} over compute",
        source="leverage, Eq 5",
        latex=rf"{symbol} = k\, C^{{\epsilon}}",
        response=result,
        protocol=FitProtocol(
            "squared",
            "leverage, App E.1: runs within 0.25 % of the least loss, without outliers",
            "C > 1e20",
        ),
        errata=errata,
    )
    for variant, name, symbol, result, law, errata in (
        ("lr", "learning rate", r"\eta", PEAK, LR, (_TABLES, _TABLE_12, _EDGE)),
        ("batch", "batch", "B", BATCH_SIZE, BATCH, (_TABLES, _TOKENS)),
    )
}


def _values(columns: Columns) -> dict[str, Array]:
    C = columns["C"]
    lr = LR["coefficient"] * C ** LR["exponent"]
    B = BATCH["coefficient"] * C ** BATCH["exponent"]
    return {"lr": lr, "B": B, "B_sequences": np.asarray(B / columns["context"])}


LAW = Formula(
    id="leverage.hyperparameters",
    title="Learning rate and batch over compute",
    source="leverage, Eq 5",
    equation="lr = 1.1576*C^-0.1529, B = 0.0694*C^0.3644, B_sequences = B/context",
    latex=r"\eta = 1.1576\, C^{-0.1529},\quad B = 0.0694\, C^{0.3644}",
    variables=(_C, CONTEXT),
    outputs=OUTPUTS,
    function=_values,
    constants={f"{x}_{name}": law[name] for x, law in (("lr", LR), ("B", BATCH)) for name in law},
    errata=(_TABLES, _TOKENS, _TABLE_12, _EDGE),
)
