"""The three ways to have memgui: a wheel, an editable install, a checkout. Each finds its files and runs.

Nothing is downloaded: each environment sees the libraries of the one that runs the tests, but not its memgui.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from memgui import __version__

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.packaging


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}"
    return done.stdout


def check(*memgui: str | Path, cwd: Path) -> None:
    if not (ROOT / "memgui" / "app.py").exists():
        pytest.skip("memgui.app is not built yet")
    run(*memgui, "check", cwd=cwd)


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment of its own, for which the libraries of this one are in sight."""

    path: Path

    @property
    def python(self) -> Path:
        return self.scripts / "python"

    @property
    def scripts(self) -> Path:
        return self.path / ("Scripts" if os.name == "nt" else "bin")

    def install(self, *what: str | Path) -> None:
        pip = (sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet")
        # The memgui of the running environment is in sight, but installed it is not here.
        alone = ("--ignore-installed", "--no-index", "--no-deps", "--no-build-isolation")
        run(*pip, *alone, *what, cwd=self.path)

    def where(self) -> tuple[Path, Path]:
        """The folder of memgui that is imported, and the one where it finds its resources."""
        code = "import memgui, memgui._resources as r; print(memgui.__path__[0]); print(r.root())"
        package, resources = run(self.python, "-c", code, cwd=self.path).splitlines()
        return Path(package), Path(resources)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    environment = Environment(tmp_path / "environment")
    run(sys.executable, "-m", "venv", "--without-pip", environment.path, cwd=tmp_path)
    names = {"base": str(environment.path), "platbase": str(environment.path)}
    site = Path(sysconfig.get_path("purelib", "venv", names))
    # A folder named in a .pth file is searched last, and its own .pth files (this memgui's) are not read.
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    return environment


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, and the wheel that was made from it alone."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


def files_in(folder: str) -> set[str]:
    """What is under version control or would be: the files of the checkout, less what running it makes."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in paths if path.parent.name != "__pycache__"}


def test_source_archive_has_package_and_resources(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames()}
    assert archive.name == f"memgui-{__version__}.tar.gz"
    assert files_in("memgui") | files_in("resources") | {"pyproject.toml", "README.md", "LICENSE"} <= names


def test_wheel_has_package_and_resources_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    extra = {name for name in names if name.startswith(f"memgui-{__version__}.")}
    assert names - extra == files_in("memgui") | {f"memgui/{name}" for name in files_in("resources")}
    assert f"memgui-{__version__}.data/data/share/applications/memgui.desktop" in extra


def test_wheel(environment: Environment, wheel: Path) -> None:
    environment.install(wheel)
    package, resources = environment.where()
    assert package.is_relative_to(environment.path)
    assert resources == package / "resources"
    check(environment.scripts / "memgui", cwd=environment.path)


def test_editable(environment: Environment) -> None:
    environment.install("--editable", ROOT)
    assert environment.where() == (ROOT / "memgui", ROOT / "resources")
    check(environment.scripts / "memgui", cwd=environment.path)


def test_checkout(environment: Environment) -> None:
    check(environment.python, "-m", "memgui", cwd=ROOT)
