"""The terms of power-law sums: ``a / N^alpha``, with the parameters, the text and the LaTeX."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from moelaws.laws.base import Array, Columns, Parameter, Variable

Feature = Callable[[Columns], Array]

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


def one_minus(variable: Variable) -> Base:
    """Returns the base ``1 - variable`` of a power, exact for small values."""
    return Base(variable, f"(1-{variable.name})", lambda c: np.log1p(-c[variable.name]))


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
