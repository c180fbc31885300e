"""One way to call torchdiffeq, and SciPy as a solver that shares no code with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch
import torchdiffeq  # type: ignore[import-untyped]
from scipy import integrate
from torch import Tensor

from restudy.errors import ConfigError

State = TypeVar("State", Tensor, tuple[Tensor, ...])
ADAPTIVE = ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")
FIXED = ("euler", "midpoint", "rk4")


@dataclass(frozen=True)
class Solver:
    """How an ODE is solved, and how its gradient is found.

    Attributes:
        method: one of `ADAPTIVE` or `FIXED`, torchdiffeq's names (its `rk4` is the 3/8 rule).
        tolerance: relative and absolute tolerance of an adaptive method; no meaning for a fixed one. Outputs inside a
            step are interpolated, by dopri8, bosh3 and fehlberg2 with less accuracy than their steps have.
        steps: of equal length over the whole interval, for a fixed method only.
        adjoint: gradients by the adjoint equation, solved backwards by the same method at the same tolerance (Chen et
            al. 2018, section 2), instead of backpropagation through the solver's operations.
        seminorm: the backward solve's error control ignores the parameters' gradients (Kidger et al. 2021).

    Raises:
        ConfigError: an unknown method, or a fixed one without steps.
    """

    method: str = "dopri5"
    tolerance: float = 1e-3
    steps: int = 0
    adjoint: bool = False
    seminorm: bool = False

    def __post_init__(self) -> None:
        if self.method not in ADAPTIVE + FIXED:
            raise ConfigError(f"method is {self.method!r}", remedy=f"allowed: {', '.join(ADAPTIVE + FIXED)}")
        if (self.steps > 0) != (self.method in FIXED):
            raise ConfigError(f"{self.method} with {self.steps} steps", remedy="steps go with a fixed method, only")

    def __call__(self, field: Callable[..., Any], state: State, times: Tensor) -> State:
        """Solve d state / dt = field(t, state).

        Args:
            field: function of a scalar time and a state; a Module when `adjoint` is set.
            state: at times[0]; a tensor of any shape, or a tuple of tensors.
            times: (T,), strictly increasing or decreasing, of the state's dtype.

        Returns:
            The state at every time, (T, ...) for each tensor of it.
        """
        arguments: dict[str, Any] = {"method": self.method, "rtol": self.tolerance, "atol": self.tolerance}
        if self.steps:
            arguments["options"] = {"step_size": float((times[-1] - times[0]).detach().abs()) / self.steps}
        if not self.adjoint:
            return cast(State, torchdiffeq.odeint(field, state, times, **arguments))
        arguments["adjoint_options"] = dict(arguments.get("options", {}))
        if self.seminorm:
            arguments["adjoint_options"]["norm"] = "seminorm"
        return cast(State, torchdiffeq.odeint_adjoint(field, state, times, **arguments))


def solve_with_scipy(
    field: Callable[[Tensor, Tensor], Tensor], state: Tensor, times: Tensor, tolerance: float, method: str = "RK45"
) -> Tensor:
    """The same initial value problem by SciPy's `solve_ivp`, without gradients: (T, ...) of the state's dtype.

    Args:
        field, state, times: as for `Solver`, the state one tensor.
        tolerance: relative and absolute. method: SciPy's name.

    Raises:
        RuntimeError: SciPy gave up.
    """

    def flat(t: float, y: Any) -> Any:
        with torch.no_grad():
            here = torch.as_tensor(y, dtype=state.dtype, device=state.device).reshape(state.shape)
            return field(torch.tensor(t, dtype=state.dtype, device=state.device), here).reshape(-1).cpu().numpy()

    at = times.detach().cpu().double().numpy()
    start = state.detach().reshape(-1).cpu().double().numpy()
    found = integrate.solve_ivp(flat, (at[0], at[-1]), start, method=method, t_eval=at, rtol=tolerance, atol=tolerance)
    if not found.success:
        raise RuntimeError(found.message)
    return torch.as_tensor(np.ascontiguousarray(found.y.T), dtype=state.dtype, device=state.device).reshape(
        len(at), *state.shape
    )
