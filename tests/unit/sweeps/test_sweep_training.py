"""Stacks against torch.optim step by step, freezing, resuming after a kill, measured steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from restudy.errors import ConfigError, ResultError
from restudy.methods.sweeps import benchmark
from restudy.methods.sweeps.programs import RULES, Rule, build, is_mlp
from restudy.methods.sweeps.trainer import Batches, Run, Task, Trial, measured_steps, train_stack

torch.set_num_threads(1)


def make(hidden: tuple[int, ...], seed: int) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        widths, layers = [6, *hidden, 3], []
        for inputs, outputs in zip(widths[:-1], widths[1:], strict=True):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("hidden", [(), (5,), (5, 4), (4, 4, 4)])
@pytest.mark.parametrize("method", ["fused", "vmap", "loop"])
def test_every_step_is_that_of_torch_optim(rule: Rule, hidden: tuple[int, ...], method: str) -> None:
    rates = torch.tensor([0.5, 0.1, 0.02], dtype=torch.float64)
    momenta = torch.tensor([0.0, 0.5, 0.9] if rule != "sgd" else [0.0] * 3, dtype=torch.float64)
    program = build([make(hidden, i).double() for i in range(3)], rule, rates, momenta, method)
    models = [make(hidden, i).double() for i in range(3)]
    optimizers = [
        torch.optim.SGD(m.parameters(), float(r), float(v), nesterov=rule == "nesterov" and float(v) > 0)
        for m, r, v in zip(models, rates, momenta, strict=True)
    ]
    generator = torch.Generator().manual_seed(0)
    for step in range(12):
        x, y = torch.randn(7, 6, generator=generator).double(), torch.randint(3, (7,), generator=generator)
        losses = program.step(x, y)
        for i, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            assert float(losses[i]) == pytest.approx(float(loss.detach()), abs=1e-12), step
            for name, ours in program.parameters(i).items():
                assert torch.allclose(ours, model.get_parameter(name), rtol=0, atol=1e-12), (step, name)
    found, errors = program.evaluate(x, y)
    for i, model in enumerate(models):
        assert float(found[i]) == pytest.approx(float(F.cross_entropy(model(x), y)), abs=1e-12)
        assert float(errors[i]) == pytest.approx(float((model(x).argmax(1) != y).double().mean()))


@pytest.mark.parametrize("method", ["fused", "vmap", "loop"])
def test_dropping_trials_leaves_the_others_as_they_were(method: str) -> None:
    rates, momenta = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.6, 0.7])
    x, y = torch.randn(9, 6), torch.arange(9) % 3
    whole = build([make((5, 4), i) for i in range(3)], "momentum", rates, momenta, method)
    part = build([make((5, 4), i) for i in range(3)], "momentum", rates, momenta, method)
    for program in (whole, part):
        program.step(x, y)
    part.keep(torch.tensor([0, 2]))
    again = build([make((5, 4), i) for i in range(3)], "momentum", rates, momenta, method)
    again.load(part.state())
    for program in (whole, part, again):
        program.step(x, y)
    for name, value in whole.parameters(2).items():
        assert torch.allclose(part.parameters(1)[name], value, atol=1e-6)
        assert torch.equal(again.parameters(1)[name], part.parameters(1)[name])


def test_what_cannot_be_stacked_is_refused() -> None:
    ones = torch.ones(1)
    assert is_mlp(make((4,), 0)) and not is_mlp(nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)))
    for models, rule, rates, momenta, method in (
        ([make((4,), 0)], "adam", ones, ones * 0, "auto"),
        ([make((4,), 0)], "sgd", torch.ones(2), ones * 0, "auto"),
        ([make((4,), 0)], "momentum", ones, ones, "auto"),
        ([make((4,), 0)], "sgd", ones, ones * 0, "magic"),
        ([nn.Conv1d(1, 1, 1)], "sgd", ones, ones * 0, "fused"),
        ([nn.BatchNorm1d(3)], "sgd", ones, ones * 0, "vmap"),
    ):
        with pytest.raises(ConfigError):
            build(models, rule, rates, momenta, method)  # type: ignore[arg-type]


def task(count: int = 64) -> Task:
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(3, (count,), generator=generator)
    inputs = torch.randn(3, 6, generator=generator)[labels] * 2 + torch.randn(count, 6, generator=generator)
    return Task((inputs, labels), (inputs[:20], labels[:20]), (inputs[20:50], labels[20:50]), (inputs, labels))


TRIALS = [Trial(0, 0.1, 0.5, 0), Trial(1, 1e6, 0.0, 1), Trial(2, 0.03, 0.9, 2)]
RUN = Run("momentum", 8, 60, seed=5, ratio=1.2)


def test_a_diverged_trial_is_frozen_recorded_and_does_not_touch_the_others() -> None:
    both = train_stack(lambda s: make((5,), s), TRIALS, task(), RUN)
    rows = both.measurements.to_pylist()
    assert {r["status"] for r in rows if r["trial_id"] == 1} == {"infeasible"} and both.diverged_at[1] > 0
    assert max(r["step"] for r in rows if r["trial_id"] == 1) == both.diverged_at[1]
    assert {r["status"] for r in rows if r["trial_id"] != 1} == {"complete"}
    alone = train_stack(lambda s: make((5,), s), [TRIALS[0], TRIALS[2]], task(), RUN).measurements.to_pylist()
    together = [r for r in rows if r["trial_id"] != 1]
    assert [r["train_loss"] for r in together] == pytest.approx([r["train_loss"] for r in alone], rel=1e-4)


def test_when_all_diverge_the_stack_ends() -> None:
    found = train_stack(lambda s: make((5,), s), [TRIALS[1]], task(), RUN)
    assert set(found.measurements["status"].to_pylist()) == {"infeasible"}


class Killed(Exception):
    pass


def test_a_killed_run_goes_on_and_gives_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "stack.pt"
    run = Run("momentum", 8, 60, seed=5, ratio=1.2, look_at=(7, 25, 40))

    def look(step, program, alive):  # type: ignore[no-untyped-def]
        return [step, len(alive), float(program.parameters(alive.index(2))["0.bias"].sum())]

    def dies(step, program, alive):  # type: ignore[no-untyped-def]
        if step == 40:
            raise Killed
        return look(step, program, alive)

    whole = train_stack(lambda s: make((5,), s), TRIALS, task(), run, look=look)
    with pytest.raises(Killed):
        train_stack(lambda s: make((5,), s), TRIALS, task(), run, checkpoint=path, save_seconds=0, look=dies)
    resumed = train_stack(lambda s: make((5,), s), TRIALS, task(), run, checkpoint=path, look=look)
    assert resumed.measurements.equals(whole.measurements)
    assert resumed.looks == whole.looks and resumed.diverged_at == whole.diverged_at
    again = train_stack(lambda s: make((5,), s), TRIALS, task(), run, checkpoint=path, look=dies)
    assert again.measurements.equals(whole.measurements), "a finished stack is read, not trained"
    with pytest.raises(ResultError):
        train_stack(lambda s: make((5,), s), TRIALS[:2], task(), run, checkpoint=path)


def test_batches_are_passes_without_replacement_and_any_step_can_be_had() -> None:
    inputs = torch.arange(10.0)[:, None]
    batches = Batches(inputs, torch.arange(10), 3, seed=1)
    seen = [batches.at(i)[1].tolist() for i in range(6)]
    assert all(len(set(sum(seen[k : k + 3], []))) == 9 for k in (0, 3)) and seen[:3] != seen[3:]
    assert Batches(inputs, torch.arange(10), 3, seed=1).at(4)[1].tolist() == seen[4]
    assert Batches(inputs, torch.arange(10), 3, seed=2).at(4)[1].tolist() != seen[4]
    with pytest.raises(ConfigError):
        Batches(inputs, torch.arange(10), 11, seed=1)


@pytest.mark.parametrize("steps", [1, 7, 200, 20000])
def test_measured_steps_resolve_s_to_the_ratio(steps: int) -> None:
    found = measured_steps(steps, 1.05, 0.01)
    assert found[0] == 0 and found[-1] == steps and found == sorted(set(found))
    dense = np.array([s for s in found if s >= max(0.02 * steps, 1)], dtype=float)
    assert all(b - a <= 1 or b / a <= 1.05 + 1 / a for a, b in zip(dense, dense[1:], strict=False))
    with pytest.raises(ConfigError):
        measured_steps(10, 1.0)


@pytest.mark.parametrize("rule", RULES)
def test_stacked_losses_are_those_of_single_modules(rule: Rule) -> None:
    batches = benchmark._batches(8, 100)
    ours = benchmark.train_stacked(benchmark.mlp, rule, batches, 3, "auto")
    theirs = benchmark.train_singly(benchmark.mlp, rule, batches, 3)
    assert float((ours - theirs).abs().max()) < 1e-5
