"""Networks defined by a derivative: ODE blocks, adjoint gradients, continuous flows, latent ODEs, point processes.

The solvers are torchdiffeq's; here is what stands on top of them and what is needed to verify them::

    block = OdeBlock(ConvField(8), Solver(tolerance=1e-3, adjoint=True))
    block(hidden)                  # z(1) for z(0) = hidden, shape kept
    block.evaluations              # of the field in the last forward pass, and in the backward pass that followed
"""

from restudy.methods.continuous.block import Counted, OdeBlock
from restudy.methods.continuous.fields import ConvField, MlpField, PlanarField
from restudy.methods.continuous.flow import ContinuousFlow, PlanarFlow
from restudy.methods.continuous.gradients import Gradients, adjoint_gradients, backprop_gradients, relative_gap
from restudy.methods.continuous.jacobian import autograd_trace, log_abs_det
from restudy.methods.continuous.latent import LatentOde
from restudy.methods.continuous.memory import saved_bytes
from restudy.methods.continuous.point_process import PoissonProcess
from restudy.methods.continuous.recurrent import Recurrent
from restudy.methods.continuous.solve import Solver, solve_with_scipy
from restudy.methods.continuous.stacks import PlainStack, ResidualStack, TiedStack

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
