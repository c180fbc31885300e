"""Rao-Blackwellized gradients for discrete distributions (Liu, Regier, Tripuraneni, Jordan, McAuliffe; ICML 2019).

A loss that is an expectation over a discrete distribution q needs the gradient of that expectation. Summing over all
categories is exact and dear; one draw (REINFORCE) is cheap and noisy. The paper splits the expectation: the k likeliest
categories are summed, the rest is represented by one draw, weighted by the whole mass that is left. The result is a
conditional expectation of the one-draw estimator, so it stays unbiased and its variance falls at least by the factor of
the left-over mass; for a budget of N evaluations a formula says how many categories to sum.

Re-run here: everything that can be enumerated (unbiasedness, the variance bound, the weight, the rebuilding of z, three
forms of one gradient, the number of categories), three Bernoulli variables descended from a wrong corner, a
semi-supervised VAE whose label is summed, drawn or relaxed, and a moving digit that must be found on a canvas; against
REINFORCE, REINFORCE with a second draw, NVIL, Gumbel-softmax and RELAX, counted in evaluations of f.

Scaled down: Fashion-MNIST with 500 labels, 14-pixel digits on a canvas of 441 places, fewer epochs. The moving digit is
part of the presets workstation and paper. Deviations stand in study.yaml and are shown beside the verdicts.
"""
