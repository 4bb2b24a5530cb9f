"""Efficiency leverage over compute, a power law (leverage paper, Eq 3)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
