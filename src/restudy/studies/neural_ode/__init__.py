"""Neural ordinary differential equations (Chen, Rubanova, Bettencourt, Duvenaud; NeurIPS 2018).

A residual network adds a small change to its hidden state in every block, which is one step of Euler's method. The
paper takes the limit: the network is the derivative of the hidden state, and a solver of ordinary differential
equations computes the output, with as many evaluations as its tolerance asks for. Gradients come from a second
equation solved backwards, so memory does not grow with the number of steps. Continuous depth also makes the change of
variables of normalising flows a trace instead of a determinant, and lets a latent state exist at every moment of an
irregular time series.

Re-run here: the equations themselves (adjoint, saved memory, Euler steps as residual blocks, traces against
determinants) to rounding; an ODE-Net against residual, tied, plain and fully connected nets; tolerances and solvers
exchanged after training; continuous against planar normalising flows; a latent ODE against recurrent forecasters on
irregular spirals that were held out; an intensity learned from event times.

Scaled down: Fashion-MNIST pooled to 14 pixels, eight channels and 250 steps; 300 spirals and 500 steps; flows of eight
units. Deviations stand in study.yaml and are shown beside the verdicts.
"""
