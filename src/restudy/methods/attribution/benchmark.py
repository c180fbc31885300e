"""Measure the attribution methods and the randomisation test against captum and Quantus on one machine.

Both peers are optional: where one is missing, the row says so instead. Times are CPU seconds of this
process, the least of `repeats` rounds in which both sides alternate; read ratios, not seconds. Nothing is
cached between rounds.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from restudy.methods.attribution.api import attribute
from restudy.methods.attribution.noisy import noise_draws
from restudy.methods.attribution.registry import get_method
from restudy.peers import import_peer
from restudy.timing import race

STEPS, SAMPLES = 16, 16
OPTIONS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "gradient_x_input": {},
    "integrated_gradients": {"steps": STEPS},
    "smoothgrad": {"samples": SAMPLES},
    "smoothgrad_ig": {"samples": 4, "steps": 8},
    "vargrad": {"samples": SAMPLES},
    "guided_backprop": {},
    "deconvolution": {},
    "gradcam": {"layer": "relu2"},
    "guided_gradcam": {"layer": "relu2"},
}
"""Options of both sides; `relu2` is the second convolution's activation in `restudy.methods.models.SmallCNN`."""


def problem(images: int = 64, seed: int = 0) -> tuple[nn.Module, Tensor, Tensor]:
    """Return a small CNN, smooth random images (N, 1, 28, 28) and its predicted classes (N,)."""
    from restudy.methods.models import SmallCNN

    model = SmallCNN(seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(images, 1, 7, 7, generator=generator)
    inputs = nn.functional.interpolate(coarse, (28, 28), mode="bilinear", align_corners=False)
    with torch.no_grad():
        return model, inputs, model(inputs).argmax(1)


def channels_last(model: nn.Module) -> nn.Module:
    """Return a copy of the model in the memory format that convolutions on a CPU prefer."""
    return copy.deepcopy(model).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def against_captum(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    *,
    options: Mapping[str, Mapping[str, Any]] = OPTIONS,
    repeats: int = 3,
) -> list[dict[str, Any]]:
    """Return a row for each method: `method`, `ours_s`, `captum_s`, `ratio` (captum / ours), `difference`.

    `difference` is max |ours - captum| / max |captum|; noise methods get the same noise. Without captum
    each row has `method` and `skipped`, the reason.
    """
    captum, reason = import_peer("captum.attr")
    rows: list[dict[str, Any]] = []
    for name, given in options.items():
        if captum is None:
            rows.append({"method": name, "skipped": reason})
            continue
        explain = captum_explainer(captum, name, given, _noise(name, given, inputs))

        def theirs(explain: Callable[..., Tensor] = explain) -> Tensor:
            return explain(model, inputs, target)

        def ours(name: str = name, given: Mapping[str, Any] = given) -> Tensor:
            return attribute(model, inputs, target, name, **given)

        (first, second), (ours_s, captum_s) = race([ours, theirs], repeats)
        difference = float((first - second).abs().max() / second.abs().max())
        times = {"ours_s": ours_s, "captum_s": captum_s, "ratio": captum_s / ours_s}
        rows.append({"method": name, **times, "difference": difference})
    return rows


def against_quantus(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    *,
    options: Mapping[str, Mapping[str, Any]] = OPTIONS,
    seed: int = 0,
    repeats: int = 2,
    checked_images: int = 8,
    peer_channels_last: bool = False,
) -> dict[str, Any]:
    """Compare the whole top-down cascade: maps of all methods on all states, and their signed rank correlation.

    Quantus runs its MPRT once for each method, with captum's explanations in batches of all images and the
    states that `restudy.methods.randomization.cascade` draws, so both explain identical weights; noise methods get
    the same noise. Our side converts its model to channels last, as the studies do; the peer gets the model
    as it was built, unless `peer_channels_last`. Returns `maps`, `ours_maps_per_s`, `quantus_maps_per_s`,
    `ratio`, and the largest difference of a correlation: `difference` in float64 on `checked_images`,
    `difference_float32` in the timed run (in single precision two nearly equal pixels can change places,
    which moves a correlation of 784 pixels by 1e-5). `same_undefined` says whether both call the same
    correlations undefined. Without the peers: `skipped`, the reason.
    """
    quantus, reason = import_peer("quantus")
    captum, captum_reason = import_peer("captum.attr")
    if quantus is None or captum is None:
        return {"skipped": reason or captum_reason}

    def runners(model: nn.Module, inputs: Tensor, target: Tensor) -> list[Callable[[], dict[str, Any]]]:
        explainers = {
            name: captum_explainer(captum, name, given, _noise(name, given, inputs)) for name, given in options.items()
        }
        return [
            lambda: _our_scores(model, inputs, target, options, seed),
            lambda: {
                name: _quantus_scores(quantus, model, inputs, target, explain, seed)
                for name, explain in explainers.items()
            },
        ]

    fast = channels_last(model)
    pair = [runners(fast, inputs, target)[0], runners(fast if peer_channels_last else model, inputs, target)[1]]
    results, (ours_s, quantus_s) = race(pair, repeats)
    few = slice(0, checked_images)
    exact = [run() for run in runners(copy.deepcopy(model).double(), inputs[few].double(), target[few])]
    difference, same = _score_differences(*exact)
    maps = sum(scores.size for scores in results[0].values()) + len(inputs) * len(options)
    return {
        "methods": list(options),
        "maps": maps,
        "ours_maps_per_s": maps / ours_s,
        "quantus_maps_per_s": maps / quantus_s,
        "ratio": quantus_s / ours_s,
        "difference": max(difference.values()),
        "difference_float32": max(_score_differences(*results)[0].values()),
        "same_undefined": same,
    }


def _score_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[dict[str, float], bool]:
    """Return the largest difference for each method, and whether the same values are NaN."""
    gaps = {name: np.abs(ours[name] - theirs[name]) for name in ours}
    same = all(np.array_equal(np.isnan(ours[name]), np.isnan(theirs[name])) for name in ours)
    return {name: float(np.max(gap[~np.isnan(gap)], initial=0.0)) for name, gap in gaps.items()}, same


def captum_explainer(
    captum: Any, name: str, options: Mapping[str, Any], noise: Tensor | None
) -> Callable[[nn.Module, Tensor, Tensor], Tensor]:
    """Return captum's way to the same attribution; `noise` (samples, N, C, H, W) for the noise methods."""
    steps = {"n_steps": options.get("steps", 50), "method": "riemann_middle"}
    simple = {
        "gradient": (captum.Saliency, {"abs": False}),
        "gradient_x_input": (captum.InputXGradient, {}),
        "integrated_gradients": (captum.IntegratedGradients, steps),
        "guided_backprop": (captum.GuidedBackprop, {}),
        "deconvolution": (captum.Deconvolution, {}),
    }
    noisy = {
        "smoothgrad": (captum.Saliency, "smoothgrad", {"abs": False}),
        "vargrad": (captum.Saliency, "vargrad", {"abs": False}),
        "smoothgrad_ig": (captum.IntegratedGradients, "smoothgrad", steps),
    }

    class GivenNoise(captum.NoiseTunnel):  # type: ignore[misc]
        @staticmethod
        def _add_noise_to_input(points: Tensor, stdev: float, samples: int) -> Tensor:
            assert noise is not None
            return points.repeat_interleave(samples, 0) + noise.transpose(0, 1).flatten(0, 1)

    def explain(model: nn.Module, inputs: Tensor, target: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name in simple:
                kind, extra = simple[name]
                return _detached(kind(model).attribute(inputs, target=target, **extra))
            if name in noisy:
                kind, tunnel, extra = noisy[name]
                draws = {"nt_type": tunnel, "nt_samples": options["samples"], "stdevs": 1.0}
                return _detached(GivenNoise(kind(model)).attribute(inputs, target=target, **draws, **extra))
            layer = model.get_submodule(options["layer"])
            if name == "guided_gradcam":
                guided = captum.GuidedGradCam(model, layer)
                return _detached(guided.attribute(inputs, target, interpolate_mode="bilinear"))
            low = captum.LayerGradCam(model, layer).attribute(inputs, target, relu_attributions=True)
            size = tuple(inputs.shape[2:])
            resized = captum.LayerAttribution.interpolate(low, size, "bilinear")
            return _detached(resized).expand_as(inputs)

    return explain


def _our_scores(
    model: nn.Module, inputs: Tensor, target: Tensor, options: Mapping[str, Mapping[str, Any]], seed: int
) -> dict[str, Any]:
    """Return method to signed rank correlations with the trained model's maps, (states, N)."""
    from restudy.methods.randomization import randomization_test
    from restudy.methods.similarity import Reference

    references: dict[str, Reference] = {}
    scores: dict[str, list[Any]] = {name: [] for name in options}
    for state in randomization_test(model, inputs, target, options, seed=seed):
        for name, maps in state.maps.items():
            if state.index == 0:
                references[name] = Reference(maps)
            else:
                scores[name].append(references[name].compare(maps, ["spearman"])["spearman"])
    return {name: np.array(values) for name, values in scores.items()}


def _quantus_scores(
    quantus: Any,
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    explain: Callable[[nn.Module, Tensor, Tensor], Tensor],
    seed: int,
) -> Any:
    """Return Quantus' rank correlations for one method, (states, N)."""
    from restudy.methods.randomization import cascade

    class SameStates(quantus.helpers.model.pytorch_model.PyTorchModel):  # type: ignore[misc]
        def get_random_layer_generator(self, order: str = "", seed: int = 0) -> Iterator[Any]:
            yield from cascade(model, seed=states_seed)

    class SameTest(quantus.MPRT):  # type: ignore[misc]
        def general_preprocess(self, **given: Any) -> Any:
            data = super().general_preprocess(**given)
            data["model"] = SameStates(model)
            return data

    states_seed = seed

    def explain_arrays(model: Any, inputs: Any, targets: Any, **_: Any) -> Any:
        module = model.get_model() if hasattr(model, "get_model") else model
        return explain(module, torch.as_tensor(inputs), torch.as_tensor(targets)).numpy()

    with _silent():
        test = SameTest(abs=False, normalise=False, disable_warnings=True)
        found = test(
            model=model,
            x_batch=inputs.numpy(),
            y_batch=target.numpy(),
            explain_func=explain_arrays,
            channel_first=True,
            batch_size=len(inputs),
        )
    return np.array([values for layer, values in found.items() if layer != "original"])


def _noise(name: str, options: Mapping[str, Any], inputs: Tensor) -> Tensor | None:
    """Return the noise that our method draws, so that the peer can have the same; None if it draws none."""
    method = get_method(name)
    if not method.random:
        return None
    return torch.stack(list(noise_draws(inputs, method.resolve(options))))


def _detached(values: Any) -> Tensor:
    result: Tensor = values.detach()
    return result


@contextmanager
def _silent() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rows() -> list[dict[str, Any]]:
    """Rows for `make bench`: every method against captum, and the whole cascade against Quantus."""
    model, inputs, target = problem()
    found = []
    for row in against_captum(model, inputs, target):
        note = row.get("skipped") or f"largest relative difference {row['difference']:.1e}"
        found.append({"what": f"{row['method']} against captum", "ratio": row.get("ratio"), "aim": None, "note": note})
    for same in (False, True):
        row = against_quantus(model, inputs, target, peer_channels_last=same)
        what = "maps per second of the whole cascade against Quantus" + (", both channels last" if same else "")
        note = row.get("skipped") or (
            f"{row['ours_maps_per_s']:.0f} against {row['quantus_maps_per_s']:.0f} maps/s; correlations differ by "
            f"{row['difference']:.0e} in float64"
        )
        found.append({"what": what, "ratio": row.get("ratio"), "aim": 3.0, "note": note})
    return found
