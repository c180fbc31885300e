"""restudy: re-run the experiments of machine-learning papers and judge their claims."""

__version__ = "0.1.0"
