"""Learning rate and batch over compute, for mixtures of experts (leverage paper, Eq 5)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
