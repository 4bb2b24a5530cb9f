"""Rates and batches of mixtures over compute, tokens and activation ratio (2609.08690)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
