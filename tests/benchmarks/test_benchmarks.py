"""The benchmarks run and print what they promise; how fast the machine is, is no test."""

import json
import subprocess
import sys
from pathlib import Path

PROMISED = {
    "estimate_ms_p50",
    "estimate_cold_ms_p50",
    "edit_to_paint_ms_p50",
    "edit_to_paint_ms_p99",
    "edit_to_paint_tabs_ms_p50",
    "edit_to_paint_tabs_ms_p99",
    "edit_to_tab_ms_p50",
    "edit_to_tab_ms_p99",
    "edit_to_paint_jobs_ms_p50",
    "edit_to_paint_jobs_ms_p99",
    "start_ratio",
    "memory_ratio",
    "start_block_ms",
    "sweep_ms",
    "heat_map_ms",
    "ways_ms",
    "ways_drawn_ms",
    "ways_slowest_ms",
    "solve_ms",
}


def test_every_promised_figure_is_printed() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--json", "--quick"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert set(figures) >= PROMISED
    assert all(figures[name] > 0 for name in PROMISED)
