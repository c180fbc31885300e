"""Networks defined by a derivative: ODE blocks, adjoint gradients, continuous flows, latent ODEs, point processes.

The solvers are torchdiffeq's; here is what stands on top of them and what is needed to verify them::

    block = OdeBlock(ConvField(8), Solver(tolerance=1e-3, adjoint=True))
    block(hidden)                  # z(1) for z(0) = hidden, shape kept
    block.evaluations              # of the field in the last forward pass, and in the backward pass that followed
"""

from restudy.continuous.block import Counted, OdeBlock
from restudy.continuous.fields import ConvField, MlpField, PlanarField
from restudy.continuous.flow import ContinuousFlow, PlanarFlow
from restudy.continuous.gradients import Gradients, adjoint_gradients, backprop_gradients, relative_gap
from restudy.continuous.jacobian import autograd_trace, log_abs_det
from restudy.continuous.latent import LatentOde
from restudy.continuous.memory import saved_bytes
from restudy.continuous.point_process import PoissonProcess
from restudy.continuous.recurrent import Recurrent
from restudy.continuous.solve import Solver, solve_with_scipy
from restudy.continuous.stacks import PlainStack, ResidualStack, TiedStack

__all__ = [
    "ContinuousFlow",
    "ConvField",
    "Counted",
    "Gradients",
    "LatentOde",
    "MlpField",
    "OdeBlock",
    "PlainStack",
    "PlanarField",
    "PlanarFlow",
    "PoissonProcess",
    "Recurrent",
    "ResidualStack",
    "Solver",
    "TiedStack",
    "adjoint_gradients",
    "autograd_trace",
    "backprop_gradients",
    "log_abs_det",
    "relative_gap",
    "saved_bytes",
    "solve_with_scipy",
]
