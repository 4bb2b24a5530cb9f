"""Loss of the dense baseline over its size (Clark et al. 2022): a power law without a floor."""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
