"""Chinchilla: loss from parameters and tokens of a dense model (Hoffmann et al. 2022)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
