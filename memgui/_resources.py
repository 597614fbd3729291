"""Where the files of `resources/` lie: inside an installed package, or beside it in a checkout."""

from pathlib import Path


def root(package: Path = Path(__file__).parent) -> Path:
    """Return the folder that holds catalog, icons, translations and the desktop entry.

    A wheel carries it as `memgui/resources`; an editable install and a checkout have it beside
    `pyproject.toml`, which is looked for so that a stranger's folder of that name is never taken.

    Args:
        package: the folder of the package memgui.

    Raises:
        FileNotFoundError: neither place has it; the message names both.
    """
    packaged = package / "resources"
    if packaged.is_dir():
        return packaged
    checkout = package.parent / "resources"
    if checkout.is_dir() and (package.parent / "pyproject.toml").is_file():
        return checkout
    raise FileNotFoundError(
        f"memgui's resources are missing: neither {packaged} (an installed memgui) "
        f"nor {checkout} beside a pyproject.toml (a checkout) exists; install memgui again"
    )
