"""``python -m tests.benchmarks [--json]``: prints one object of figures, in under 50 seconds."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

from memgui.catalog import Catalog
from tests.benchmarks.editing import EDITS, editing
from tests.benchmarks.planning import ROUNDS as PLANNING_ROUNDS
from tests.benchmarks.planning import planning
from tests.benchmarks.reading import reading
from tests.benchmarks.starting import ROUNDS, starting


def apart(module: str) -> dict[str, Any]:
    """The figures that a module prints in a process of its own, which has no window and no past."""
    ran = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(ran.stdout)
    return figures


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few rounds: do they run at all?")
    options = parser.parse_args(argv)
    start = time.monotonic()
    rounds, edits, questions = (1, 20, 1) if options.quick else (ROUNDS, EDITS, PLANNING_ROUNDS)
    figures: dict[str, Any] = {
        **starting(rounds),
        **editing(edits),
        **apart("tests.benchmarks.estimating"),
        **reading(),
        **planning(Catalog(), questions),
    }
    figures["seconds"] = time.monotonic() - start
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        for name, value in figures.items():
            print(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
