"""The terms of power-law sums: ``a / N^alpha``, with the parameters and the text of each.

A law states each term once: ``term("a", 406.4, "the size term", over(N, "alpha", 0.34))`` declares
both parameters with their published values, and gives their units, the text and the LaTeX.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from moelaws.laws.base import Array, Columns, Parameter, Starts, Variable

Feature = Callable[[Columns], Array]
Range = tuple[float, float]

# The starts in the sparsity paper's Table 2, of ln of a coefficient and of an exponent
LOGS = (0.0, 10.0, 20.0)
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
MINUS_QUARTERS = (-1.25, -1.0, -0.75, -0.5, -0.25, 0.0)

LOSS_UNIT = "nats/token"
# Units of counts and ratios, which a coefficient's unit leaves out.
_PURE = {"1", "experts", "d_ff/d_expert"}
_GREEK = {
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda"),
    *("mu", "nu", "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
}


@dataclass(frozen=True)
class Base:
    """The base of a power: a variable, or a function of one."""

    variable: Variable
    text: str
    log: Feature


@dataclass(frozen=True)
class Power:
    """The factor ``base^exponent`` of a term or, where it is ``inverse``, one over it."""

    base: Base
    exponent: Parameter
    inverse: bool

    def feature(self, columns: Columns) -> Array:
        """Returns the derivative of the factor's logarithm by the exponent, shape (n,)."""
        log_base = self.base.log(columns)
        return -log_base if self.inverse else log_base


@dataclass(frozen=True)
class Term:
    """A positive coefficient times powers: log-linear in its parameters."""

    coefficient: Parameter
    powers: tuple[Power, ...] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (self.coefficient, *(power.exponent for power in self.powers))

    @property
    def equation(self) -> str:
        """Returns the term as text, such as ``d/((1-S)^delta * N^gamma)``."""
        above, below = self._factors(lambda base, exponent: f"{base}^{exponent}")
        numerator = "*".join([self.coefficient.name, *above])
        if len(below) > 1:
            return f"{numerator}/({' * '.join(below)})"
        return "/".join([numerator, *below])

    @property
    def latex(self) -> str:
        above, below = self._factors(lambda base, power: f"{symbol(base)}^{{{symbol(power)}}}")
        numerator = symbol(self.coefficient.name)
        if above:
            numerator += (r"\, " if numerator.startswith("\\") else " ") + " ".join(above)
        return rf"\frac{{{numerator}}}{{{' '.join(below)}}}" if below else numerator

    def _factors(self, write: Callable[[str, str], str]) -> tuple[list[str], list[str]]:
        """Returns the powers as text: those above the fraction bar, and those below it."""
        written = [(write(p.base.text, p.exponent.name), p.inverse) for p in self.powers]
        return [text for text, below in written if not below], [t for t, below in written if below]


def term(
    name: str,
    published: float | None,
    what: str,
    *powers: Power,
    bounds: Range = (1e-6, 1e40),
    starts: Starts = LOGS,
    unit: str = LOSS_UNIT,
) -> Term:
    """Returns a term of a loss in nats/token, or of a response in ``unit``, with its ``powers``.

    ``what`` is the term in words; the descriptions become "coefficient of ..." and, for a power
    that has none, "exponent of ...". The other arguments are the coefficient's: its published
    value and bounds on the natural scale, and starts of its logarithm.
    """
    described = []
    for power in powers:
        exponent = power.exponent
        if power.base.variable.unit not in _PURE:
            unit += f" {power.base.variable.unit}^{'' if power.inverse else '-'}{exponent.name}"
        exponent = replace(exponent, description=exponent.description or f"exponent of {what}")
        described.append(replace(power, exponent=exponent))
    description = f"coefficient of {what}"
    coefficient = Parameter(name, unit.strip(), *bounds, description, "log", published, starts)
    return Term(coefficient, tuple(described))


def irreducible_loss(
    name: str, published: float | None, starts: Starts = (1.5,), unit: str = LOSS_UNIT
) -> Term:
    """Returns the constant term of a loss, with starts of its logarithm."""
    described = "irreducible loss"
    return Term(Parameter(name, unit, 1e-3, 1e3, described, "log", published, starts))


def over(
    base: Variable | Base,
    name: str,
    published: float | None,
    description: str = "",
    bounds: Range = (0.0, 4.0),
    starts: Starts = QUARTERS,
) -> Power:
    """Returns the factor ``1 / base^name`` of a term, which falls where ``name`` is positive.

    The other arguments are those of :class:`Parameter`; the term gives a missing description.
    """
    exponent = Parameter(name, "1", *bounds, description, "linear", published, starts)
    base = base if isinstance(base, Base) else Base(base, base.name, log(base.name))
    return Power(base, exponent, inverse=True)


def times(
    base: Variable | Base,
    name: str,
    published: float | None,
    description: str = "",
    bounds: Range = (-4.0, 0.0),
    starts: Starts = MINUS_QUARTERS,
) -> Power:
    """Returns the factor ``base^name`` of a term; the arguments are those of :func:`over`."""
    return replace(over(base, name, published, description, bounds, starts), inverse=False)


def one_minus(variable: Variable) -> Base:
    """Returns the base ``1 - variable`` of a power, exact for small values."""
    return Base(variable, f"(1-{variable.name})", lambda c: np.log1p(-c[variable.name]))


def parameters_of(terms: Iterable[Term]) -> dict[str, Parameter]:
    """Returns name -> parameter of the terms, which must declare a common one equally."""
    parameters: dict[str, Parameter] = {}
    for parameter in (p for t in terms for p in t.parameters):
        if parameters.setdefault(parameter.name, parameter) != parameter:
            raise ValueError(f"two terms declare parameter {parameter.name} differently")
    return parameters


def symbol(name: str) -> str:
    """Returns a name in LaTeX: ``alpha`` and ``N_active`` as ``\\alpha`` and ``N_{act}``."""
    stem, _, index = name.partition("_")
    stem = rf"\{stem}" if stem in _GREEK else stem
    return f"{stem}_{{{'act' if index == 'active' else index}}}" if index else stem


def log(name: str) -> Feature:
    """Returns the feature of an exponent of the variable ``name``."""
    return lambda columns: np.log(columns[name])


def one(columns: Columns) -> Array:
    """Returns the feature of an intercept, or of ln of a coefficient."""
    return np.ones_like(next(iter(columns.values())))
