"""The nets of the study, what is drawn anew in them, and the saliency maps of a net by every method."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from restudy.data import fashion_mnist, mnist5k
from restudy.data.dataset import ImageSet
from restudy.errors import ConfigError
from restudy.methods.attribution import applicable, attribute_many
from restudy.methods.models import MLP, Layer, SmallCNN, derive_seed, layers_top_down
from restudy.methods.models.initializers import BatchNormPolicy
from restudy.methods.randomization import reinitialize

CONTROLS = ("noise", "edges")
LOADERS = {
    "cnn-fashion_mnist": fashion_mnist.load,
    "mlp-mnist5k": mnist5k.load,
    "cnn_paper_init-fashion_mnist": fashion_mnist.load,
}
CLASSES = 10
Init = Literal["torch", "paper"]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the models: channels of the two convolutions, the CNN's hidden layer, those of the MLP."""

    channels: tuple[int, int]
    hidden: int
    mlp_hidden: tuple[int, ...]
    init: Init

    @classmethod
    def of(cls, channels: Sequence[int], hidden: int, mlp_hidden: Sequence[int], init: str) -> Sizes:
        """Sizes from the lists of study.yaml."""
        first, second = channels
        return cls((first, second), hidden, tuple(mlp_hidden), "paper" if init == "paper" else "torch")


def build(pair: str, sizes: Sizes, seed: int) -> SmallCNN | MLP:
    """The untrained model of a pair; `seed` determines its weights.

    Raises:
        ConfigError: unknown pair.
    """
    if pair not in LOADERS:
        raise ConfigError(f"pair {pair!r} is not known", remedy=f"allowed: {', '.join(LOADERS)}")
    if pair.startswith("cnn"):
        init: Init = "paper" if pair.startswith("cnn_paper_init") else sizes.init
        return SmallCNN(sizes.channels, sizes.hidden, CLASSES, init=init, seed=seed)
    return MLP((28 * 28, *sizes.mlp_hidden, CLASSES), init=sizes.init, seed=seed)


def load(pair: str) -> ImageSet:
    """The images of a pair, uint8 (N, 28, 28), with labels."""
    return LOADERS[pair]()


def as_inputs(images: object) -> Tensor:
    """uint8 images (N, 28, 28) as network inputs: float32 (N, 1, 28, 28) in [0, 1]."""
    return torch.tensor(images, dtype=torch.float32).div_(255)[:, None]


def chosen(count: int, available: int, seed: int, purpose: str) -> Tensor:
    """Which of the `available` images a seed uses for a purpose: at most `count` indices, int64, no repeats."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "images", purpose))
    return torch.randperm(available, generator=generator)[:count]


def restore(model: nn.Module, weights: dict[str, Tensor], prefix: str) -> nn.Module:
    """Load the tensors `<prefix>/<parameter>` into a model and put it into evaluation mode."""
    names = {key.removeprefix(f"{prefix}/"): tensor for key, tensor in weights.items() if key.startswith(f"{prefix}/")}
    model.load_state_dict(names)
    return model.eval()


@dataclass(frozen=True)
class Role:
    """What a randomised net is an example of.

    `state`: `top_down` and `bottom_up` (cumulative), `independent` (one layer alone). `depth`: number of layers drawn
    anew, or in the independent order the layer's place from the top. `layer`: the layer drawn last.
    """

    state: str
    depth: int
    layer: str


@dataclass(frozen=True)
class Step:
    """One randomised net to measure: the layers drawn anew, the number of the draw, its roles."""

    layers: tuple[Layer, ...]
    redraw: int
    roles: tuple[Role, ...]


def steps(layers: Sequence[Layer], *, orders: Sequence[str], top_redraws: int, full_redraws: int) -> Iterator[Step]:
    """Every randomised net of the model-parameter test, each set of layers once although it plays several roles.

    Args:
        layers: from the logits to the input.
        orders: of `top_down`, `bottom_up`, `independent`.
        top_redraws: draws of the topmost layer alone. full_redraws: draws of the whole net.
    """
    roles: dict[frozenset[str], list[Role]] = {}
    count = len(layers)
    for order in orders:
        for place in range(1, count + 1):
            part, last = _part(layers, order, place)
            roles.setdefault(frozenset(layer.name for layer in part), []).append(Role(order, place, last.name))
    for names, found in roles.items():
        members = tuple(layer for layer in layers if layer.name in names)
        draws = top_redraws if names == {layers[0].name} else full_redraws if len(names) == count else 1
        for redraw in range(draws):
            yield Step(members, redraw, tuple(found))


def randomized(model: nn.Module, step: Step, seed: int, *, bn_policy: BatchNormPolicy = "keep_stats") -> nn.Module:
    """A copy of the model with the step's layers drawn from the distribution they were built with.

    Every layer has a seed of its own, and a layer gets the same draw in every set that holds it.
    """
    net = copy.deepcopy(model)
    for layer in step.layers:
        reinitialize(net, layer, derive_seed(seed, "redraw", step.redraw), bn_policy=bn_policy)
    return net.eval()


def top_down_layers(model: nn.Module, blocks: Sequence[str] = ()) -> list[Layer]:
    """The layers of a model from the logits to the input, joined into fewer steps that end at the named layers."""
    layers = layers_top_down(model)
    if not blocks:
        return layers
    joined: list[Layer] = []
    members: list[Layer] = []
    for layer in layers:
        members.append(layer)
        if layer.name in blocks or layer is layers[-1]:
            modules = tuple(name for member in members for name in member.modules)
            draws = {name: member.initializer(name) for member in members for name in member.modules}
            joined.append(Layer(layer.name, modules, draws))
            members = []
    return joined


def _part(layers: Sequence[Layer], order: str, place: int) -> tuple[Sequence[Layer], Layer]:
    if order == "top_down":
        return layers[:place], layers[place - 1]
    if order == "bottom_up":
        return layers[-place:], layers[-place]
    return [layers[place - 1]], layers[place - 1]


@dataclass(frozen=True)
class Settings:
    """What determines the maps besides net and images.

    `ig_steps`: points of integrated gradients; `samples`: noisy copies of SmoothGrad and VarGrad; `sg_ig_samples` and
    `sg_ig_steps`: copies and points of their combination; `batch_size`: images in a pass.
    """

    ig_steps: int
    samples: int
    sg_ig_samples: int
    sg_ig_steps: int
    batch_size: int
    baseline: float = 0.0

    def options(self, method: str, noise_seed: int) -> dict[str, Any]:
        """Options of a method; all noisy methods see the same noise in every net (common random numbers)."""
        found: dict[str, dict[str, Any]] = {
            "integrated_gradients": {"steps": self.ig_steps, "baseline": self.baseline},
            "smoothgrad": {"samples": self.samples, "seed": noise_seed},
            "vargrad": {"samples": self.samples, "seed": noise_seed},
            "smoothgrad_ig": {
                "samples": self.sg_ig_samples,
                "steps": self.sg_ig_steps,
                "baseline": self.baseline,
                "seed": noise_seed,
            },
        }
        return found.get(method, {})


@dataclass(frozen=True)
class Explained:
    """Images (N, C, H, W) on the net's device and the class explained for each, int64 (N,), the same for all nets."""

    images: Tensor
    target: Tensor
    noise_seed: int


def usable(model: nn.Module, methods: Sequence[str], images: Tensor) -> list[str]:
    """The methods that are defined for a model: GradCAM, for one, needs a convolution."""
    return [name for name in methods if applicable(model, name, images)[0]]


def maps(
    model: nn.Module, shown: Explained, methods: Sequence[str], settings: Settings, *, control_seed: int
) -> dict[str, Tensor]:
    """Maps of all methods and of both controls, name to (N, C, H, W).

    `control_seed`: the iid noise control is drawn anew for each net, so that it is what it stands for, a map that
    knows neither net nor image.
    """
    wanted: dict[str, Mapping[str, Any]] = {m: settings.options(m, shown.noise_seed) for m in methods}
    wanted |= {"noise": {"seed": control_seed}, "edges": {}}
    return attribute_many(model, shown.images, shown.target, wanted, batch_size=settings.batch_size)


def predicted(model: nn.Module, images: Tensor, batch_size: int) -> Tensor:
    """The class with the highest logit, int64 (N,)."""
    with torch.no_grad():
        return torch.cat([model(part).argmax(1) for part in images.split(batch_size)])  # type: ignore[no-untyped-call]
