"""Every method gives captum's values (captum 0.9)."""

import captum.attr as captum
import pytest
import torch
from tests.unit.attribution.attribution_nets import CAPTUM_READABLE, Plain, Residual, batch, relative, seeded

from restudy.methods.attribution import attribute

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9}
cases = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(params=CAPTUM_READABLE)
def net(request):
    return seeded(CAPTUM_READABLE[request.param]())


def both(net, dtype):
    inputs, target = batch()
    return net.to(dtype), inputs.to(dtype), target


@cases
def test_gradient(net, dtype):
    net, x, y = both(net, dtype)
    theirs = captum.Saliency(net).attribute(x, y, abs=False)
    assert relative(attribute(net, x, y, "gradient"), theirs) <= TOLERANCE[dtype]


@cases
def test_gradient_x_input(net, dtype):
    net, x, y = both(net, dtype)
    theirs = captum.InputXGradient(net).attribute(x, y)
    assert relative(attribute(net, x, y, "gradient_x_input"), theirs) <= TOLERANCE[dtype]


@cases
@pytest.mark.parametrize("rule", ["riemann_middle", "gausslegendre"])
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_integrated_gradients(net, dtype, rule, batch_size):
    net, x, y = both(net, dtype)
    # captum rounds positions and weights to float32 in every dtype; with 16 midpoints the rounding is exact.
    tolerance = 1e-6 if (dtype, rule) == (torch.float64, "gausslegendre") else TOLERANCE[dtype]
    baseline = torch.full_like(x[:1], 0.3)
    theirs = captum.IntegratedGradients(net).attribute(x, baseline, y, n_steps=16, method=rule)
    ours = attribute(
        net, x, y, "integrated_gradients", steps=16, quadrature=rule, baseline=baseline, batch_size=batch_size
    )
    assert relative(ours, theirs) <= tolerance


def tunnel(monkeypatch, explainer, x, y, noise, kind, **options):
    """captum's NoiseTunnel with the noise given: (samples, N, C, H, W)."""

    def add(inputs, stdev, samples):
        return inputs.repeat_interleave(samples, 0) + noise.transpose(0, 1).flatten(0, 1)

    monkeypatch.setattr(captum.NoiseTunnel, "_add_noise_to_input", staticmethod(add))
    found = captum.NoiseTunnel(explainer).attribute(
        x, nt_type=kind, nt_samples=len(noise), target=y, stdevs=1.0, **options
    )
    return found.detach()


@cases
@pytest.mark.parametrize(("method", "kind"), [("smoothgrad", "smoothgrad"), ("vargrad", "vargrad")])
def test_noise_methods(net, dtype, method, kind, monkeypatch):
    net, x, y = both(net, dtype)
    noise = torch.randn((9, *x.shape), generator=torch.Generator().manual_seed(2)).to(dtype) * 0.2
    theirs = tunnel(monkeypatch, captum.Saliency(net), x, y, noise, kind, abs=False)
    for batch_size in (2, 8, 64):
        ours = attribute(net, x, y, method, samples=9, noise=noise, batch_size=batch_size)
        assert relative(ours, theirs) <= TOLERANCE[dtype]


@cases
def test_smoothgrad_of_integrated_gradients(net, dtype, monkeypatch):
    net, x, y = both(net, dtype)
    noise = torch.randn((4, *x.shape), generator=torch.Generator().manual_seed(2)).to(dtype) * 0.2
    theirs = tunnel(
        monkeypatch,
        captum.IntegratedGradients(net),
        x,
        y,
        noise,
        "smoothgrad",
        n_steps=8,
        method="riemann_middle",
    )
    ours = attribute(net, x, y, "smoothgrad_ig", samples=4, steps=8, noise=noise)
    assert relative(ours, theirs) <= TOLERANCE[dtype]


@cases
@pytest.mark.parametrize(
    ("method", "theirs"), [("guided_backprop", "GuidedBackprop"), ("deconvolution", "Deconvolution")]
)
def test_backprop_rules(net, dtype, method, theirs):
    net, x, y = both(net, dtype)
    expected = getattr(captum, theirs)(net).attribute(x.clone(), y)
    assert relative(attribute(net, x, y, method), expected) <= TOLERANCE[dtype]


def captum_cam(net, layer, x, y, mode="bilinear"):
    low = captum.LayerGradCam(net, layer).attribute(x, y, relu_attributions=True)
    return captum.LayerAttribution.interpolate(low, tuple(x.shape[2:]), mode).detach()


@cases
@pytest.mark.parametrize(("kind", "layer"), [(Plain, "act2"), (Residual, "act2"), (Plain, "conv1")])
def test_gradcam(kind, layer, dtype):
    net, x, y = both(seeded(kind()), dtype)
    theirs = captum_cam(net, net.get_submodule(layer), x, y).expand_as(x)
    options = {} if layer == "act2" else {"layer": layer}
    ours = attribute(net, x, y, "gradcam", **options)
    assert theirs.abs().max() > 0
    assert relative(ours, theirs) <= TOLERANCE[dtype]
    assert torch.equal(ours, attribute(net, x, y, "gradcam", layer=layer))


@cases
@pytest.mark.parametrize("kind", [Plain, Residual])
def test_guided_gradcam(kind, dtype):
    net, x, y = both(seeded(kind()), dtype)
    theirs = captum.GuidedGradCam(net, net.act2).attribute(x.clone(), y)  # nearest by default
    ours = attribute(net, x, y, "guided_gradcam", resize="nearest")
    assert relative(ours, theirs) <= TOLERANCE[dtype]
    bilinear = captum.GuidedGradCam(net, net.act2).attribute(x.clone(), y, interpolate_mode="bilinear")
    assert relative(attribute(net, x, y, "guided_gradcam"), bilinear) <= TOLERANCE[dtype]
