"""A user's own model and pictures: tables, figures and a page; what a model lacks is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

from restudy.checkup import Options, check_model, load_images
from restudy.checkup.images import input_channels, read_labels
from restudy.checkup.judge import lower_bound, perturbation_verdicts, randomization_verdicts, summary
from restudy.checkup.measure import depths
from restudy.cli.check import check
from restudy.errors import ConfigError
from restudy.results import read_table

NETS = """
import torch
import torch.nn.functional as F
from torch import nn

class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += x
        return F.relu(out)

class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn, self.pool = nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6), nn.MaxPool2d(3, 2, 1)
        self.block, self.fc = Block(6), nn.Linear(6, 4)
    def forward(self, x):
        x = self.block(self.pool(F.relu(self.bn(self.stem(x)))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

def resnet():
    return ResNet()
def grey():
    return nn.Sequential(nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 49, 3))
def smooth():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
class Owned(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4))
    def forward(self, x):
        return x.mean((2, 3)) @ self.weight
def owned():
    return Owned()
def maps():
    return nn.Conv2d(3, 2, 3)
class Raising(nn.Module):
    def forward(self, x):
        raise ValueError("something\\nlong")
def raising():
    return Raising()
class Detached(nn.Module):
    def forward(self, x):
        return x.detach().mean((2, 3))
def detached():
    return Detached()
class NotFinite(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) / 0
def not_finite():
    return NotFinite()
"""
FEW = [
    "--methods",
    "sensitivity,guided_backprop,lrp_epsilon,lrp_alpha_beta",
    "--states",
    "2",
    "--fills",
    "uniform,mean",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_check_nets.py").write_text(NETS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    for number, (height, width) in enumerate([(40, 56)] * 4 + [(48, 30)] * 2):
        (tmp_path / "photos").mkdir(exist_ok=True)
        pixels = generator.integers(0, 256, (height // 4, width // 4, 3)).astype(np.uint8)
        picture = Image.fromarray(pixels).resize((width, height))
        picture.save(tmp_path / "photos" / f"{number}.{'png' if number % 2 else 'jpg'}")
    (tmp_path / "photos" / "notes.txt").write_text("no picture")
    (tmp_path / "labels.txt").write_text("".join(f"{n}.{'png' if n % 2 else 'jpg'},{n % 4}\n" for n in range(6)))
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(check, list(arguments), catch_exceptions=False)


def test_residual_net_with_pictures_of_several_sizes(here: Path) -> None:
    common = ["--model", "my_check_nets:resnet", "--images", "photos", "--size", "32", *FEW]
    for out in ("a", "b"):
        done = run(*common, "--out", out)
        assert done.exit_code == 0, done.output
        assert done.output.splitlines()[-1] == f"{out}/index.html"
    names = sorted(path.name for path in (here / "a").iterdir())
    figures = [f"{name}.{suffix}" for name in ("areas", "cascade", "maps") for suffix in ("pdf", "png", "svg")]
    tables = ["complexity", "maps", "perturbation", "randomization", "verdicts"]
    assert names == sorted(["index.html", *figures, *(f"{name}.parquet" for name in tables)])
    assert all((here / "a" / name).read_bytes() == (here / "b" / name).read_bytes() for name in names)
    page = (here / "a" / "index.html").read_text()
    assert "<code>--methods sensitivity,guided_backprop,lrp_epsilon,lrp_alpha_beta</code>" in page
    assert "None" not in page and "[&#x27;" not in page
    assert "http" not in page and "lrp_alpha_beta" in page and "6 images, colour, 32 x 32" in page
    verdicts = read_table(here / "a" / "verdicts.parquet").to_pandas()
    assert set(verdicts.method) == {"sensitivity", "guided_backprop", "lrp_epsilon", "lrp_alpha_beta", "edges", "noise"}
    assert set(verdicts.check) == {
        "randomisation top_down", "randomisation bottom_up", "perturbation uniform", "perturbation mean"
    }  # fmt: skip
    edges = verdicts[(verdicts.method == "edges") & verdicts.check.str.startswith("randomisation")]
    assert set(edges.verdict) == {"failed"} and np.allclose(edges.value, 1.0)
    noise = verdicts[(verdicts.method == "noise") & verdicts.check.str.startswith("randomisation")]
    assert set(noise.verdict) == {"passed"}


def test_grey_net_with_colour_pictures_and_labels(here: Path) -> None:
    few = ["--size", "14", "--methods", "lrp_epsilon,gradcam", "--states", "2", "--fills", "black", "--limit", "3"]
    done = run("--model", "my_check_nets:grey", "--images", "photos", "--labels", "labels.txt", *few)
    assert done.exit_code == 0, done.output
    assert "too few images" in done.output
    page = (here / "check" / "index.html").read_text()
    assert "3 images, grey, 14 x 14" in page and "The class explained is the label" in page


def test_a_method_without_a_rule_is_refused_by_name(here: Path) -> None:
    done = run("--model", "my_check_nets:smooth", "--images", "photos", "--size", "20", *FEW)
    assert done.exit_code == 0, done.output
    lines = {line.split()[0]: line for line in done.output.splitlines()}
    for method in ("guided_backprop", "lrp_epsilon", "lrp_alpha_beta"):
        assert "refused" in lines[method] and "silu" in lines[method].lower(), lines[method]
    assert "refused" not in lines["sensitivity"]
    assert "silu" in (here / "check" / "index.html").read_text().lower()


def test_a_model_that_cannot_be_drawn_anew_has_no_randomisation(here: Path) -> None:
    done = run("--model", "my_check_nets:owned", "--images", "photos", "--size", "16", "--channels", "3",
               "--methods", "sensitivity,gradient_x_input")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "No randomisation" in (here / "check" / "index.html").read_text()
    assert not (here / "check" / "cascade.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--images", "nowhere"], "no folder"),
        (["--images", "."], "no pictures"),
        (["--images", "photos", "--methods", "lrp"], "not known"),
        (["--images", "photos", "--fills", "green"], "fills"),
        (["--images", "photos", "--methods", ","], "--methods"),
        (["--images", "photos", "--labels", "binary.txt"], "is no text"),
        (["--images", "photos", "--size", "14", "--labels", "far.txt"], "labels are 0 to 2"),
        (["--images", "photos", "--device", "nothing"], "--device nothing"),
        (["--images", "photos", "--out", "labels.txt/out"], "is a file"),
        (["--images", "photos", "--mean", "nan"], "--mean"),
        (["--images", "photos", "--std", "0"], "std"),
        (["--images", "photos", "--mean", "0,0"], "mean"),
        (["--images", "photos", "--labels", "absent.txt"], "no file"),
        (["--images", "photos", "--size", "2"], "refuses images"),
    ],
)
def test_mistakes_are_said_in_one_line(here: Path, arguments: list[str], word: str) -> None:
    (here / "binary.txt").write_bytes(bytes(range(256)))
    (here / "far.txt").write_text("".join(f"{n}\n" for n in range(6)))
    with pytest.raises(ConfigError) as caught:
        run("--model", "my_check_nets:grey", *arguments)
    assert word in str(caught.value) and "\n" not in str(caught.value)
    assert not (here / "check").exists()


@pytest.mark.parametrize("option", ["--states", "--batch-size", "--size", "--region", "--limit", "--seed"])
def test_numbers_out_of_range_name_the_option(here: Path, option: str) -> None:
    done = run("--model", "my_check_nets:grey", "--images", "photos", option, "-1")
    assert done.exit_code == 2 and f"'{option}'" in done.output


@pytest.mark.parametrize("name", ["raising", "detached", "not_finite"])
def test_a_model_that_fails_is_named(here: Path, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run("--model", f"my_check_nets:{name}", "--images", "photos", "--size", "14")
    words = {
        "raising": "Raising: ",
        "detached": "Detached: the logits have no gradient",
        "not_finite": "logits of image 1",
    }
    assert words[name] in str(caught.value) and "\n" not in str(caught.value)


def test_pixels_that_are_not_finite_are_refused(here: Path) -> None:
    values = np.full((8, 8), 0.5, dtype=np.float32)
    for number, word in ((np.nan, "not finite"), (np.inf, "not finite"), (3.0, "outside 0 to 1")):
        values[2, 3] = number
        (here / "deep").mkdir(exist_ok=True)
        Image.fromarray(values).save(here / "deep" / "a.tif")
        with pytest.raises(ConfigError, match=rf"a\.tif.*{word}"):
            load_images("deep")
    images = load_images("photos", size=14)
    images.inputs[2, 0, 3, 3] = np.nan
    from my_check_nets import resnet

    with pytest.raises(ConfigError, match=f"{images.names[2]}: has pixels that are not finite"):
        check_model(resnet(), images, here / "out")


def test_pictures_of_sixteen_bits_keep_their_range(here: Path) -> None:
    (here / "deep").mkdir()
    Image.fromarray(np.array([[0, 65535], [32768, 13107]], dtype=np.uint16)).save(here / "deep" / "a.png")
    found = load_images("deep", channels=3).inputs[0]
    assert torch.allclose(found[1], torch.tensor([[0.0, 1.0], [0.5, 0.2]]), atol=1e-4) and torch.equal(
        found[0], found[2]
    )


def test_a_model_without_logits(here: Path) -> None:
    with pytest.raises(ConfigError, match="logits"):
        run("--model", "my_check_nets:maps", "--images", "photos", "--size", "16")


def test_a_broken_picture_is_named(here: Path) -> None:
    (here / "photos" / "z.png").write_bytes(b"no picture")
    with pytest.raises(ConfigError, match=r"z\.png"):
        load_images("photos")


def test_pictures_keep_their_size_and_are_scaled(here: Path) -> None:
    found = load_images("photos", limit=4, mean=(0.5,), std=(0.25,))
    assert found.inputs.shape == (4, 3, 40, 56)
    assert (found.low, found.high) == (-2.0, 2.0)
    assert load_images("photos").inputs.shape == (6, 3, 224, 224)
    grey = load_images("photos", channels=1, size=10)
    assert grey.inputs.shape == (6, 1, 10, 10)


def test_labels(here: Path) -> None:
    (here / "plain.txt").write_text("3\n1\n2\n")
    assert read_labels("plain.txt", ["a", "b", "c"]).tolist() == [3, 1, 2]
    assert read_labels("labels.txt", ["2.jpg", "1.png"]).tolist() == [2, 1]
    for text, word in (("a,x\nb,1\n", "'x' is no label"), ("1\n", "1 labels for 2"), ("a,1\n", "no label for b")):
        (here / "wrong.txt").write_text(text)
        with pytest.raises(ConfigError, match=word):
            read_labels("wrong.txt", ["a", "b"])


def test_the_model_comes_back_unchanged(here: Path) -> None:
    from my_check_nets import resnet

    model = resnet().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    images = load_images("photos", size=24)
    check_model(model, images, here / "out", Options(methods=("lrp_epsilon", "smoothgrad"), states=2, fills=("mean",)))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training and input_channels(model) == 3


def test_depths() -> None:
    assert depths(1, 5) == {1}
    assert depths(3, 5) == {1, 2, 3}
    assert depths(19, 5) == {1, 6, 10, 14, 19}


def randomization(values: list[float]) -> pa.Table:
    rows = [
        {"order": "top_down", "depth": 1, "layers": 1, "layer": "fc", "method": "m", "metric": "spearman", "image": i}
        | {"value": value, "unit": "1"}
        for i, value in enumerate(values)
    ]
    return pa.Table.from_pylist(rows)


def test_rule_of_the_randomisation() -> None:
    for values, verdict in (([0.1, 0.2, 0.3], "passed"), ([0.9, 0.8, 0.7], "failed"), ([np.nan, 0.1, 0.1], "no map")):
        assert randomization_verdicts(randomization(values), ["m"])[0]["verdict"] == verdict


def test_rule_of_the_perturbation() -> None:
    def table(gap: float, count: int = 8) -> pa.Table:
        generator = np.random.default_rng(0)
        rows = []
        for image in range(count):
            base = generator.normal()
            for method, value in (("random", base), ("m", base + gap + 0.1 * generator.normal())):
                rows.append({"fill": "mean", "method": method, "image": image, "value": value})
        return pa.Table.from_pylist(rows)

    verdicts = {gap: perturbation_verdicts(table(gap), ["m"])[0]["verdict"] for gap in (1.0, 0.0, -1.0)}
    assert verdicts == {1.0: "passed", 0.0: "undecided", -1.0: "failed"}
    assert perturbation_verdicts(table(1.0, 4), ["m"])[0]["verdict"] == "too few images"
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert lower_bound(values) == pytest.approx(3 - 2.1318 * np.sqrt(2.5 / 5), abs=1e-3)


def test_summary_names_every_method() -> None:
    verdicts = randomization_verdicts(randomization([0.1]), ["m"])
    lines = summary(pa.Table.from_pylist(verdicts))
    assert len(lines) == 2 and "passed 0.10" in lines[1]
