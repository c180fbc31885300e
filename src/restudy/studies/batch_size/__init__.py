"""Measuring the effects of data parallelism on neural network training (Shallue, Lee, Antognini, Sohl-Dickstein,
Frostig, Dahl; 2018, JMLR 2019).

How many training steps does it take to reach a fixed error, as the batch grows? The paper tunes learning rate and
momentum anew at every batch size, on many models and data sets, and finds one shape: at first doubling the batch halves
the steps (perfect scaling), then it pays back less and less, and in the end nothing (maximal data parallelism). Where
the curve bends differs by orders of magnitude between workloads; momentum and the model move it, the size of the data
set hardly does. No simple rule says how the learning rate must change, and large batches do not hurt the best error.

Re-run here: the whole study on Fashion-MNIST and MNIST digits at 14 x 14 pixels with MLPs and softmax regression. Every
batch size has its own quasi-random search over the same wide box; trials of one batch size train as one tensor program.
A replicate is the whole sweep repeated with other images, Sobol scrambles, weights and orders of the data. The best
trials are trained again, trials on the lines of the linear and the square-root rule are added, and the gradient noise
scale is measured on the way. A sweep counts only where the optimum lies inside the box and enough trials are feasible.

Scaled down: small images and models, 20,000 training images, at most 20,000 steps, 16 trials per batch size instead of
100. Nesterov, other models, half of the data and B = 16,384 are part of the presets workstation and paper. Deviations
stand in study.yaml and are shown beside the verdicts.
"""
