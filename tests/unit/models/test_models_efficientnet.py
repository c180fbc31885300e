import copy

import pytest
import skimage.data
import torch
from torch import nn

from restudy.data import imagenet_lite0
from restudy.errors import DataError
from restudy.methods.attribution import applicable, attribute_many, methods
from restudy.methods.models import layers_top_down
from restudy.methods.models.efficientnet import PACKAGE, fold_batch_norms, load_lite0, scale_pixels
from restudy.methods.randomization import cascade


@pytest.fixture(scope="module")
def lite0():
    """Lite0 with random weights, and batch norms whose statistics are those of random images."""
    model = load_lite0(None)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad(), torch.random.fork_rng():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.weight.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
                module.bias.copy_(torch.randn(module.num_features, generator=generator) * 0.3)
                module.momentum = 1.0
        model.train()(torch.randn(8, 3, 64, 64, generator=generator))
    return model.eval()


@pytest.fixture(scope="module")
def images():
    return scale_pixels(torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)))


def test_folded_batch_norms_give_the_same_logits(lite0, images):
    folded = fold_batch_norms(lite0)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    assert sum(isinstance(module, nn.BatchNorm2d) for module in lite0.modules()) == 49
    with torch.no_grad():
        expected, found = lite0(images), folded(images)
        silent = load_lite0(None)(images)
    assert float(expected.std()) > 1e-3 and not torch.allclose(expected, silent, atol=1e-3)
    assert float((expected - found).abs().max()) < 1e-4


def test_the_published_weights_fold_within_1e_4():
    try:
        published = imagenet_lite0.load()
    except DataError as absent:
        pytest.skip(f"weights not fetched: {absent}")
    photo = torch.from_numpy(skimage.data.chelsea()[:224, 100:324].copy()).permute(2, 0, 1)[None] / 255
    model, folded = load_lite0(published.weights), load_lite0(published.weights, folded=True)
    with torch.no_grad():
        expected, found = model(scale_pixels(photo)), folded(scale_pixels(photo))
    assert float((expected - found).abs().max()) < 1e-4
    assert published.classes[int(expected.argmax())] in ("Egyptian cat", "tabby", "tiger cat")


def test_folding_keeps_a_batch_norm_that_has_no_convolution_before_it():
    net = nn.Sequential(
        nn.BatchNorm2d(3), nn.Conv2d(3, 4, 1), nn.ReLU(), nn.BatchNorm2d(4), nn.Conv2d(4, 3, 1), nn.BatchNorm2d(3)
    )
    folded = fold_batch_norms(net)
    assert [type(module).__name__ for module in folded] == [
        "BatchNorm2d", "Conv2d", "ReLU", "BatchNorm2d", "Conv2d", "Identity",
    ]  # fmt: skip


def test_layers_cover_the_network_from_the_logits_to_the_stem(lite0):
    layers = layers_top_down(lite0)
    assert [layer.name for layer in layers] == [
        "logits", "head", *[f"block_{index}" for index in range(15, -1, -1)], "stem",
    ]  # fmt: skip
    covered = {id(p) for layer in layers for name in layer.modules for p in lite0.get_submodule(name).parameters()}
    assert covered == {id(parameter) for parameter in lite0.parameters()}
    assert sum(len(layer.modules) for layer in layers) == len({n for layer in layers for n in layer.modules})


@pytest.mark.parametrize("policy", ["keep_stats", "reset_stats"])
def test_cascade_changes_layer_by_layer(lite0, policy):
    names = [layer.name for layer in layers_top_down(lite0)][:3]
    for step, (name, model) in enumerate(cascade(lite0, seed=1, bn_policy=policy)):
        if step == len(names):
            break
        assert name == names[step]
        block = model.network._blocks[15]
        assert (not torch.equal(block._project_conv.weight, lite0.network._blocks[15]._project_conv.weight)) == (
            step >= 2
        )
        head = model.network._bn1
        assert bool((head.weight == 1).all()) == (step >= 1)
        assert bool((head.running_var == 1).all()) == (step >= 1 and policy == "reset_stats")
        assert torch.equal(model.network._conv_stem.weight, lite0.network._conv_stem.weight)


def test_initialisers(lite0):
    name, model = next(cascade(lite0, seed=0))
    assert name == "logits" and not model.network._fc.bias.any()
    assert float(model.network._fc.weight.detach().abs().max()) <= 1000**-0.5
    _, model = next(cascade(load_lite0(None, initializer=PACKAGE), seed=0))
    assert model.network._fc.bias.any()


def test_every_method_applies(lite0, images):
    names = list(methods())
    assert all(applicable(lite0, name, images)[0] for name in names)
    options = {name: {option.name: 2 for option in methods()[name].options if option.minimum == 1} for name in names}
    exact, image, target = copy.deepcopy(lite0).double(), images[:1].double(), torch.tensor([3])
    found = attribute_many(exact, image, target, options)
    folded = attribute_many(fold_batch_norms(exact), image, target, options)
    for name in names:
        assert bool(torch.isfinite(found[name]).all())
        torch.testing.assert_close(folded[name], found[name], rtol=1e-6, atol=1e-9, msg=name)


def test_missing_or_broken_weights(tmp_path):
    with pytest.raises(DataError, match="none.pth: is missing"):
        load_lite0(tmp_path / "none.pth")
    (tmp_path / "broken.pth").write_bytes(b"nothing")
    with pytest.raises(DataError, match="not a readable state dict"):
        load_lite0(tmp_path / "broken.pth")
    torch.save({"a": torch.ones(1)}, tmp_path / "other.pth")
    with pytest.raises(DataError, match="no weights of EfficientNet-Lite0"):
        load_lite0(tmp_path / "other.pth")


def test_weights_from_a_file(tmp_path, lite0, images):
    torch.save(lite0.network.state_dict(), tmp_path / "weights.pth")
    with torch.no_grad():
        assert torch.equal(load_lite0(tmp_path / "weights.pth")(images), lite0(images))
        folded = load_lite0(tmp_path / "weights.pth", folded=True)
        assert float((folded(images) - lite0(images)).abs().max()) < 1e-4
