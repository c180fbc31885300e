"""Re-initialisation of trained layers and the model-parameter randomisation test (Adebayo et al. 2018)."""

from restudy.methods.randomization.reinitialize import cascade, independent, reinitialize
from restudy.methods.randomization.states import State, randomization_test

__all__ = ["State", "cascade", "independent", "randomization_test", "reinitialize"]
