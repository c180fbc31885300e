"""How does batch normalization help optimization? (Santurkar, Tsipras, Ilyas, Madry; NeurIPS 2018, arXiv:1805.11604).

Batch norm was introduced to reduce internal covariate shift: the change of a layer's inputs while the layers below
learn. The paper takes the explanation apart. Distributions of activations are hardly more stable with batch norm;
noise of random mean and scale behind every batch norm makes them far less stable, and the net trains almost as well;
and measured by gradients (how much a layer's gradient changes once the layers below took their step) the shift is not
smaller with batch norm. What batch norm does is smooth the loss: along the gradient the loss varies less and the
gradient changes less, because averaging over the batch removes parts of the gradient. Other normalisations do the same.

Re-run here: eight convolutions on Fashion-MNIST in four arms (plain, batch norm, noisy batch norm, plain with the same
noise) at the paper's learning rate, plain and batch norm at two more, the 25-layer deep linear network at both of the
paper's learning rates, and every exact statement of section 4, with an erratum.

Scaled down: Fashion-MNIST for CIFAR-10, width 8 for 64, 1,200 steps for 15,000; l_p arms, the whole axis of learning
rates and longer runs at preset `workstation`. The table of deviations in study.yaml is shown beside the verdicts.
"""
