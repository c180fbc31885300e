import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

from restudy.errors import ConfigError, RestudyError, ResultError
from restudy.methods.models import SmallCNN
from restudy.methods.training import evaluate, load_checkpoint, save_checkpoint, train_classifier


def data(number=96, size=12):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (number,), generator=generator)
    inputs = torch.rand(number, 1, size, size, generator=generator) * 0.5
    inputs[torch.arange(number), 0, 2 + labels * 3] += 1.0
    return inputs, labels


class Dropped(SmallCNN):
    def __init__(self, **options):
        super().__init__((4, 6), 12, 3, image_size=12, **options)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        return super().forward(self.dropout(x))


OPTIONS = {"epochs": 4, "batch_size": 20, "learning_rate": 3e-3, "seed": 1}


def same(left, right):
    return all(torch.equal(a, b) for a, b in zip(left.state_dict().values(), right.state_dict().values(), strict=True))


def trained(**options):
    model = Dropped()
    history = train_classifier(model, *data(), **{**OPTIONS, **options})
    return model, history


def test_it_learns_and_says_so():
    model, history = trained(epochs=12)
    losses = [epoch.loss_nats for epoch in history.epochs]
    assert losses[-1] < losses[0] / 2 and [epoch.epoch for epoch in history.epochs] == list(range(1, 13))
    loss, accuracy = evaluate(model, *data())
    assert accuracy > 0.9 and loss < losses[0] and not model.training
    assert not history.stopped_early and history.resumed_from == 0


def test_the_seed_alone_determines_the_result():
    torch.manual_seed(1)
    first, _ = trained()
    second = Dropped()
    torch.manual_seed(2)
    state = torch.random.get_rng_state()
    train_classifier(second, *data(), **OPTIONS)
    assert torch.equal(state, torch.random.get_rng_state())
    other, _ = trained(seed=2)
    assert same(first, second) and not same(first, other)


def test_the_order_of_the_data_is_common_to_runs_with_other_labels():
    seen = []

    class Spy(nn.Module):
        def __init__(self, offset):
            super().__init__()
            self.fc = nn.Linear(144, 3)
            nn.init.constant_(self.fc.bias, offset)

        def forward(self, x):
            seen[-1].append(x.clone())
            return self.fc(x.flatten(1))

    x, y = data()
    for offset, labels in ((0.0, y), (1.0, y.flip(0))):
        seen.append([])
        train_classifier(Spy(offset), x, labels, **{**OPTIONS, "epochs": 2})
    assert all(torch.equal(a, b) for a, b in zip(*seen, strict=True))
    assert [len(part) for part in seen[0]] == [20, 20, 20, 20, 16] * 2
    assert not torch.equal(torch.cat(seen[0][:5]), torch.cat(seen[0][5:]))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_interrupted_and_resumed_is_bitwise_the_same(tmp_path, channels_last, precision):
    options = {"channels_last": channels_last, "precision": precision, "weight_decay": 1e-3}
    expected, history = trained(**options)
    path = tmp_path / "deep" / "run.pt"

    class Stop(Exception):
        pass

    def stop(record):
        if record.epoch == 2:
            raise Stop

    with pytest.raises(Stop):
        trained(**options, checkpoint=path, on_epoch=stop)
    torch.manual_seed(99)
    model, resumed = trained(**options, checkpoint=path)
    assert resumed.resumed_from == 2 and resumed.epochs == history.epochs
    assert same(model, expected)
    again, done = trained(**options, checkpoint=path)
    assert done.resumed_from == 4 and done.epochs == history.epochs and same(again, expected)
    assert [entry.name for entry in path.parent.iterdir()] == ["run.pt"]


SCRIPT = """
import sys, time, pathlib, torch
sys.path.insert(0, sys.argv[2])
torch.set_num_threads(1)
from test_training_supervised import trained
def tell(record):
    print(record.epoch, flush=True)
    time.sleep(0.05)

trained(epochs=6, checkpoint=pathlib.Path(sys.argv[1]), on_epoch=tell)
"""


def test_killed_and_resumed_is_bitwise_the_same(tmp_path):
    path = tmp_path / "run.pt"
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), os.path.dirname(__file__)]  # noqa: PTH120
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "3":
            process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    model, history = trained(epochs=6, checkpoint=path)
    assert history.resumed_from >= 3 and same(model, trained(epochs=6)[0])


def test_early_stop_and_sparse_checkpoints(tmp_path):
    path = tmp_path / "run.pt"
    model, history = trained(epochs=50, stop_at_train_accuracy=0.8, checkpoint=path, checkpoint_every=7)
    assert history.stopped_early and 1 < len(history.epochs) < 50
    assert history.epochs[-1].accuracy >= 0.8 > history.epochs[-2].accuracy
    again, done = trained(epochs=50, stop_at_train_accuracy=0.8, checkpoint=path)
    assert done.stopped_early and done.epochs == history.epochs and same(model, again)


def test_a_foreign_or_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    trained(checkpoint=path)
    for change, named in (
        ({"learning_rate": 1e-4}, "learning_rate"), ({"batch_size": 7, "seed": 3}, "batch_size, seed"),
        ({"epochs": 2}, "has 4 epochs, more than this run would train"),
    ):  # fmt: skip
        with pytest.raises(ResultError, match=f"run.pt: .*{named}.*delete it; training starts anew"):
            trained(checkpoint=path, **change)
    x, y = data()
    with pytest.raises(ResultError, match="other data"):
        train_classifier(Dropped(), x, y.flip(0), **OPTIONS, checkpoint=path)
    with pytest.raises(ResultError, match="other model"):
        train_classifier(Dropped(seed=9), x, y, **OPTIONS, checkpoint=path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ResultError, match="run.pt: is not a readable checkpoint; delete it"):
        trained(checkpoint=path)


def test_an_unwritable_folder_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="cannot be written"):
        save_checkpoint(tmp_path / "file" / "run.pt", {})
    assert load_checkpoint(tmp_path / "none.pt") is None


def test_a_loss_that_is_not_finite_names_epoch_and_step():
    x, y = data()
    x[:] = 3e38
    with pytest.raises(
        RestudyError, match=r"training: the loss is (nan|inf) in epoch 1, step [12]; lower learning_rate"
    ):
        train_classifier(Dropped(), x, y, **OPTIONS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": -1}, "epochs is -1; allowed: at least 0"), ({"batch_size": 0}, "batch_size is 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"), ({"precision": "float16"}, "float32 or bfloat16"),
        ({"stop_at_train_accuracy": 1.5}, "stop_at_train_accuracy is 1.5"),
    ],
)  # fmt: skip
def test_mistakes(change, message):
    with pytest.raises(ConfigError, match=message):
        trained(**change)
    x, y = data()
    with pytest.raises(ConfigError, match="one for each input"):
        train_classifier(Dropped(), x, y[:3], **OPTIONS)


def test_evaluate_restores_the_mode():
    model = Dropped().train()
    model.pool1.eval()
    evaluate(model, *data())
    assert model.training and not model.pool1.training
