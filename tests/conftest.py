"""Fixtures that several folders share: copies of the project, with toy studies or the real ones."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
# One thread per process, as in the pipeline: the suite runs one worker a core.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# Shells start background jobs with Ctrl-C ignored, which every process below would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FILES = ("Snakefile", "Makefile", "constraints.txt", "pyproject.toml", "workflow", "src", ".dvcignore")


@dataclass
class Project:
    """A copy of the project in a folder of its own, driven through the command line as a user would."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """This interpreter first on PATH, the copy's source first on PYTHONPATH, no tracking unless asked."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        mine = {
            "PATH": path,
            "PYTHONPATH": str(self.root / "src"),
            "RESTUDY_ROOT": str(self.root),
            "RESTUDY_TRACKING": "0",
            "RESTUDY_DATA": os.environ.get("RESTUDY_DATA", str(ROOT / "data" / "raw")),
        }
        return os.environ | mine | self.env

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        """Start a command of the copy in a process group of its own."""
        return subprocess.Popen(
            [*arguments],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )

    def run(self, *arguments: str, code: int | None = 0, timeout: float = 600) -> str:
        """Run a command of the copy; its output. `code` is the exit code expected (None: any)."""
        done = subprocess.run(
            [*arguments], cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=timeout
        )
        text = done.stdout + done.stderr
        if code is not None:
            assert done.returncode == code, f"{' '.join(arguments)} gave {done.returncode}:\n{text}"
        return text

    def restudy(self, *arguments: str, code: int | None = 0, timeout: float = 600) -> str:
        """Run `restudy ...`."""
        return self.run(sys.executable, "-m", "restudy.cli", *arguments, code=code, timeout=timeout)

    def reproduce(self, preset: str = "smoke", *more: str, code: int | None = 0) -> str:
        """Run `restudy run` at a preset on two cores."""
        return self.restudy("run", "--preset", preset, "--cores", "2", *more, code=code, timeout=1500)

    def study(self, slug: str) -> Path:
        """The folder of a study."""
        return self.root / "src" / "restudy" / "studies" / slug

    def outputs(self, *patterns: str) -> dict[str, bytes]:
        """Bytes of outputs by path: results, models and figures by default, without the varying facts."""
        chosen = patterns or ("results/**/*", "models/**/*", "figures/**/*")
        found = sorted({p for pattern in chosen for p in self.root.glob(pattern) if p.is_file()})
        names = {p.relative_to(self.root).as_posix(): p for p in found if not p.name.endswith(".run.json")}
        return {name: path.read_bytes() for name, path in names.items()}


def copy_project(target: Path, *, studies: bool) -> Project:
    """Copy the project's files; without its studies where toys are to be added."""
    target.mkdir(parents=True)
    for name in FILES:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", *([] if studies else ["studies"]))
            shutil.copytree(source, target / name, ignore=ignored)
        elif source.exists():
            shutil.copy2(source, target / name)
    project = Project(target)
    if not studies:
        folder = project.root / "src" / "restudy" / "studies"
        folder.mkdir()
        shutil.copy2(ROOT / "src" / "restudy" / "studies" / "__init__.py", folder)
    return project


@pytest.fixture
def empty(tmp_path: Path) -> Project:
    """A copy without studies."""
    return copy_project(tmp_path / "project", studies=False)


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Project]) -> Project:
    """A project that all workers of the suite share: the first one makes it, the others wait and use it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(folder.with_suffix(".lock")):
        done = folder.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            done.touch()
    return Project(folder)


@pytest.fixture(scope="session")
def computed_toys(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two toy studies, computed at smoke; shared: copy it before changing anything."""

    def make(folder: Path) -> Project:
        project = copy_project(folder, studies=False)
        for slug in ("toy_one", "toy_two"):
            project.restudy("new", slug)
        project.reproduce()
        return project

    return once(tmp_path_factory, "computed_toys", make)


@pytest.fixture
def toys(computed_toys: Project, tmp_path: Path) -> Project:
    """A copy with two toy studies, computed at smoke."""
    target = tmp_path / "project"
    shutil.copytree(computed_toys.root, target, symlinks=True)
    return Project(target)
