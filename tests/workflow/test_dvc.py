"""A lab with one shared folder, on real DVC: computed once, served to all, never wrong."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, Project, once
from tests.workflow.material import add_data, declare, edit, jobs

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(1800)]

PIPELINE = "workflow/dvc/smoke/dvc.yaml"
BARE = ("snakemake", "--profile", "workflow/profiles/default", "--cores", "1", "--config", "preset=smoke", "-n")
ALL_OF_A_STUDY = Counter({"table": 2, "verdicts_of_study": 1, "figure": 2, "notebook": 1, "page": 1})


def git(project: Project, *arguments: str) -> str:
    return project.run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments)


def configure(project: Project, folder: Path, cache: Path | None = None) -> None:
    """What a member of the lab types once a clone (docs/shared-storage.md)."""
    project.run("dvc", "remote", "add", "--local", "--default", "lab", str(folder / "remote"))
    project.run("dvc", "remote", "modify", "--local", "lab", "verify", "true")
    if cache:
        project.run("dvc", "cache", "dir", "--local", str(cache))
        project.run("dvc", "config", "--local", "cache.shared", "group")


@pytest.fixture(scope="session")
def lab(computed_toys: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `first` (a clone that computed and published), `origin.git`, DVC's `remote` and shared `cache`."""

    def make(folder: Path) -> Project:
        folder.mkdir(parents=True)
        first = Project(folder / "first")
        shutil.copytree(computed_toys.root, first.root, symlinks=True)
        for name in (".gitignore", ".dvc/config", ".dvc/.gitignore", ".dvcignore"):
            (first.root / name).parent.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, first.root / name)
        add_data(first, "toy_one")
        first.restudy("dvc-yaml")
        git(first, "init", "--quiet", "--initial-branch", "main")
        configure(first, folder, folder / "cache")
        first.reproduce()
        said = first.restudy("publish", "--preset", "smoke", "--push")
        assert "6 parts committed" in said
        git(first, "add", ".")
        git(first, "commit", "--quiet", "-m", "x")
        first.run("git", "clone", "--quiet", "--bare", ".", str(folder / "origin.git"))
        return first

    return once(tmp_path_factory, "lab", make).root


@pytest.fixture
def clone(lab: Path, tmp_path: Path) -> Callable[..., Project]:
    """Makes a clone, with the shared cache or with a cache of its own, and with a copy of the store if asked."""

    def make(name: str = "clone", *, shared: bool, store: Path = lab) -> Project:
        project = Project(tmp_path / name)
        Project(tmp_path).run("git", "clone", "--quiet", str(lab / "origin.git"), str(project.root))
        # The data are nowhere: what is shared needs none.
        project.env["RESTUDY_DATA"] = str(tmp_path / f"{name}-data")
        configure(project, store, store / "cache" if shared else None)
        return project

    return make


def computed(lab: Path) -> dict[str, bytes]:
    return Project(lab / "first").outputs()


def test_dvc_yaml_is_what_the_studies_give() -> None:
    Project(ROOT).restudy("dvc-yaml", "--check")


def test_second_clone_is_served_by_the_run_cache(lab: Path, clone: Callable[..., Project]) -> None:
    second = clone(shared=True)
    # Not only what git names: dvc.lock may lag behind, the run-cache serves all the same.
    (second.root / "workflow/dvc/smoke/dvc.lock").unlink()
    said = second.run("dvc", "repro", PIPELINE)
    assert said.count("is cached - skipping run") == 6 and "jobs to run" not in said
    assert second.outputs() == computed(lab)
    assert "newly recorded" in second.restudy("restore", "--preset", "smoke")
    assert "30 fresh" in second.restudy("status", "--preset", "smoke")


def test_third_clone_pulls_and_restores(lab: Path, clone: Callable[..., Project]) -> None:
    third = clone(shared=False)
    # Presets that nobody published are named by a bare `dvc pull`, which then exits with 1.
    third.run("dvc", "pull", "--allow-missing")
    assert "restudy restore" in third.run(*BARE, code=1), "bare Snakemake must not plan from modification times"
    assert "(30 newly recorded), 0 set aside, 0 stale" in third.restudy("restore", "--preset", "smoke")
    assert jobs(third.run(*BARE)) == Counter()
    assert "30 fresh" in third.restudy("status", "--preset", "smoke")
    assert third.outputs() == computed(lab)
    assert "up to date" in third.run("dvc", "status", PIPELINE)
    # Without a target DVC lists what is not published (here: other presets) and the stage that always runs.
    listed = re.findall(r"^(\S+):$", third.run("dvc", "status"), re.MULTILINE)
    assert "fingerprints" in listed and not [name for name in listed if PIPELINE in name]
    plans(third)


def plans(project: Project) -> None:
    """Each change in a pulled clone plans exactly what depends on it."""

    def plan_after(path: Path, change: Callable[[], None]) -> Counter[str]:
        text = path.read_text()
        change()
        said = project.reproduce("smoke", "--", "--dry-run")
        path.write_text(text)
        return jobs(said)

    source, study = project.study("toy_two") / "experiment.py", project.study("toy_two") / "study.yaml"
    found = plan_after(source, lambda: edit(source, "return float(((root", "return float(0.999 * ((root"))
    assert found == ALL_OF_A_STUDY + Counter({"toy_two_descend": 1})
    found = plan_after(study, lambda: edit(study, "  smoke:\n    seeds: 1", "  smoke:\n    seeds: 2"))
    assert found == ALL_OF_A_STUDY + Counter({"toy_two_descend": 1})  # the second seed alone
    tiny = project.root / "src/restudy/data/tiny.py"
    found = plan_after(tiny, lambda: declare(project, "4\n", project.root))
    assert found == ALL_OF_A_STUDY + Counter({"toy_one_descend": 1, "data": 1})
    lock = project.root / "constraints.txt"
    found = plan_after(lock, lambda: edit(lock, "\nmatplotlib==", "\nmatplotlib==0."))
    assert found == Counter({"figure": 4, "notebook": 2, "page": 2})
    assert jobs(project.reproduce("smoke", "--", "--dry-run")) == Counter()


def test_corrupted_objects_are_named_and_never_used(lab: Path, clone: Callable[..., Project], tmp_path: Path) -> None:
    store = tmp_path / "store"
    for name in ("remote", "cache"):
        shutil.copytree(lab / name, store / name)
    victims = [spoil(store / "cache", lab, "toy_one/shards/descend/s0/steps.parquet", b"PAR1 junk")]
    victims += [spoil(store / "remote", lab, "toy_two/curves.parquet", None)]
    second = clone(shared=True, store=store)
    second.run("dvc", "checkout", PIPELINE, code=None)
    said = second.restudy("restore", "--preset", "smoke")
    assert "set aside results/smoke/toy_one/shards/descend/s0/steps.parquet: cut short" in said
    assert "(29 newly recorded), 1 set aside" in said
    named = second.restudy("dvc-check", str(store / "cache"), code=1)
    assert f"corrupted {victims[0]}: results/smoke/toy_one/shards/descend/s0/steps.parquet" in named
    named = second.restudy("dvc-check", str(store / "remote"), code=1)
    assert f"corrupted {victims[1]}: results/smoke/toy_two/curves.parquet" in named
    third = clone("third", shared=False, store=store)
    said = third.run("dvc", "pull", PIPELINE, code=1)  # the remote is verified: DVC does not take it
    assert re.search(r"failed .*:\n(ERROR: )?results/smoke/toy_two/curves.parquet", said)
    third.restudy("restore", "--preset", "smoke")
    states = third.restudy("status", "--preset", "smoke", code=1)
    assert "missing   results/smoke/toy_two/curves.parquet" in states and "1 missing" in states
    # Healing: what is corrupted is removed, and the good clone publishes again.
    for name in ("cache", "remote"):
        assert "1 corrupted objects removed" in second.restudy("dvc-check", str(store / name), "--remove", code=1)
        assert "0 corrupted objects" in second.restudy("dvc-check", str(store / name))
    good = Project(tmp_path / "good")
    shutil.copytree(lab / "first", good.root, symlinks=True)
    config = good.root / ".dvc/config.local"
    config.write_text(config.read_text().replace(str(lab), str(store)))
    good.restudy("publish", "--preset", "smoke", "--push")
    assert all(path.is_file() for path in victims)
    third.run("dvc", "pull", PIPELINE)
    assert third.outputs() == computed(lab)


def spoil(store: Path, lab: Path, output: str, junk: bytes | None) -> Path:
    """Overwrite the object of an output: with junk, or with one bit flipped."""
    import hashlib

    raw = (lab / "first/results/smoke" / output).read_bytes()
    md5 = hashlib.md5(raw).hexdigest()
    path = store / "files/md5" / md5[:2] / md5[2:]
    path.chmod(0o644)
    path.write_bytes(junk if junk is not None else raw[:60] + bytes([raw[60] ^ 1]) + raw[61:])
    path.chmod(0o444)
    return path


def test_two_pushes_at_once_lose_nothing(lab: Path, clone: Callable[..., Project], tmp_path: Path) -> None:
    store = tmp_path / "store"
    clones = []
    for slug, name in (("toy_one", "a"), ("toy_two", "b")):
        project = Project(tmp_path / name)
        shutil.copytree(lab / "first", project.root, symlinks=True)
        config = project.root / ".dvc/config.local"
        config.write_text(config.read_text().replace(str(lab / "remote"), str(store / "remote")))
        edit(project.study(slug) / "experiment.py", "return float(((root", "return float(0.9 * ((root")
        project.env["RESTUDY_DATA"] = str(project.root / "data/raw")
        project.reproduce("smoke", "--study", slug, "--target", "verdicts")
        assert "2 parts committed" in project.restudy("publish", "--preset", "smoke", "--study", slug, code=1)
        clones.append(project)
    pushes = [project.start("dvc", "push", "--run-cache", PIPELINE) for project in clones]
    for push in pushes:
        said, _ = push.communicate(timeout=120)
        assert push.returncode == 0, said
    for project in clones:
        assert "in sync" in project.run("dvc", "status", "--cloud", PIPELINE)
    diff = clones[0].run("dvc", "metrics", "diff", "--all")
    assert "toy_one.verdicts.json" in diff


def test_repro_computes_what_reproduce_does_and_loses_nothing(lab: Path, clone: Callable[..., Project]) -> None:
    fresh = clone(shared=False)
    said = fresh.run("dvc", "repro", f"{PIPELINE}:toy_two-figures")
    assert "toy_two_descend 1" in said and "table 2" in said and "figure 2" in said
    theirs = {name: raw for name, raw in computed(lab).items() if "toy_two" in name}
    assert fresh.outputs() == theirs
    # Results that nobody committed survive: one more seed is computed by Snakemake, then DVC takes it as it is.
    edit(fresh.study("toy_two") / "study.yaml", "  smoke:\n    seeds: 1", "  smoke:\n    seeds: 2")
    fresh.reproduce("smoke", "--study", "toy_two", "--target", "verdicts")
    before = fresh.outputs("results/**/*")
    said = fresh.run("dvc", "repro", f"{PIPELINE}:toy_two-results")
    assert "outputs kept" in said and "to run" not in said
    assert fresh.outputs("results/**/*") == before
