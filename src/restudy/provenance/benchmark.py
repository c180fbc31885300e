"""What `numerics: portable` costs: the same training in processes of either mode, in turn.

CPU seconds of each process, one thread, the least of many steps; read ratios, not seconds. torch is imported in those
processes only: libraries choose their kernels when they are loaded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from restudy.provenance import kernels, numerics
from restudy.timing import least

ROUNDS, STEPS = 3, 30
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def rows() -> list[dict[str, Any]]:
    """Rows for `make bench`: CPU time of portable over native, for a convolutional net, an MLP and attention."""
    rounds: dict[str, list[dict[str, float]]] = {"native": [], "portable": []}
    for _ in range(ROUNDS):
        for mode, measured in rounds.items():
            measured.append(_measured(mode))
    found = []
    for net in rounds["native"][0]:
        native, portable = (min(r[net] for r in rounds[mode]) for mode in ("native", "portable"))
        note = f"{1000 * portable:.1f} against {1000 * native:.1f} ms CPU a step; {kernels.cpu().text}"
        what = f"price of `numerics: portable`: {net}, CPU time over that of native"
        found.append({"what": what, "ratio": portable / native, "aim": None, "note": note})
    return found


def _measured(mode: str, steps: int = STEPS) -> dict[str, float]:
    """CPU seconds a step by net, in a process of its own; `native` without what was set by hand."""
    clean = {k: v for k, v in numerics.environment("native").items() if k not in numerics.CHOOSING} | ONE_THREAD
    command = [sys.executable, "-m", "restudy.provenance.benchmark", str(steps)]
    environ = numerics.environment(mode, clean)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _train_all(steps: int) -> dict[str, float]:
    """Least CPU seconds of one Adam step of each net, in this process."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    channels = [(1, 32), (32, 64), (64, 64)]
    layers = [m for i, o in channels for m in (nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))]
    conv = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 9, 10))
    mlp = nn.Sequential(nn.Linear(784, 200), nn.Tanh(), nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 10))
    layer = nn.TransformerEncoderLayer(64, 8, 128, dropout=0.0, batch_first=True)
    attention = nn.Sequential(nn.TransformerEncoder(layer, 3), nn.Flatten(), nn.Linear(64 * 18, 10))
    nets: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
        "convolutions (128 images of 28 x 28)": (conv, (128, 1, 28, 28)),
        "MLP (batch 128, 784-200-200-10)": (mlp, (128, 784)),
        "attention (32 sentences of 18, width 64, 3 layers)": (attention, (32, 18, 64)),
    }
    return {name: least(_step(net, torch.rand(shape)), steps) for name, (net, shape) in nets.items()}


def _step(net: Any, batch: Any) -> Callable[[], None]:
    """A training step of a net on a batch."""
    import torch
    import torch.nn.functional as F

    target = torch.arange(len(batch)) % 10
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(batch), target).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


if __name__ == "__main__":
    print(json.dumps(_train_all(int(sys.argv[1]))))
