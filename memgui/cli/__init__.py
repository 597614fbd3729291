"""The command ``memgui``: the window, and the same core for scripts.

``memgui`` alone is what people start most, so nothing that only the terminal needs is loaded for it;
everything else is in :mod:`memgui.cli.commands`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

from memgui.planning import display


def main(argv: list[str] | None = None) -> int:
    """Run ``memgui`` with ``argv`` (``sys.argv`` without the program) and return its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments and not display.is_missing():
        # What a start makes stays: looking through it for garbage would cost a twentieth of the start.
        # `memgui.app.run` switches the collector on again.
        gc.disable()
        try:
            run = _program()
        except ImportError:
            gc.enable()  # the commands know what to say of it
        else:
            return run()
    from memgui.cli import commands

    return commands.main(arguments)


def _program() -> Callable[[], int]:
    """What opens the window, with no more loaded and read for it than it takes."""
    # Before PySide6, which would read their source.
    import memgui.estimator
    import memgui.presets.session
    import memgui.spec.validate  # noqa: F401
    from memgui.document.plain_imports import plain_imports

    with plain_imports():
        from memgui.app import run
    return run
