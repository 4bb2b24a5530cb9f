"""Loss from size, data and number of experts (Wang et al. 2024; allocation paper, Eq 5)."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
