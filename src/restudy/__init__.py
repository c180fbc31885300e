"""restudy: re-run the experiments of machine-learning papers and judge their claims."""
