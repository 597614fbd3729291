"""``python -m tests.accuracy``: run the estimator over every row of a truth folder."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memgui.catalog import Catalog
from tests.accuracy import oracle
from tests.accuracy.express import Models
from tests.accuracy.measured import measured
from tests.accuracy.peers import peers
from tests.accuracy.score import Row, Table, tables_of
from tests.accuracy.slopes import WITHIN, Line, capacities, slopes, summary
from tests.accuracy.subjects import Subjects
from tests.accuracy.verdicts import verdicts

REPOSITORY = Path(__file__).resolve().parents[2]
FIGURES = Path(__file__).parent / "truth"
"""The oracle's figures of this repository, which hold where the reference folder is not at hand."""
ORACLE: dict[str, Callable[[Any, Models], Iterator[Row]]] = {
    "params.json": oracle.params,
    "kv_cache.json": oracle.kv_cache,
    "activations.json": oracle.activations,
    "peak.json": oracle.peak,
}
MACHINES: dict[str, Callable[[Any, Subjects, Catalog], Iterator[Row]]] = {
    "peer_cases.json": peers,
    "measured.json": measured,
    "verdicts.json": verdicts,
}


def truth_folder() -> Path:
    """The truth tables of the reference folder, wherever that lies; the repository's own without it."""
    reference = Path(os.environ.get("MEMGUI_SHARED", REPOSITORY / ".." / "shared")) / "truth"
    return reference if reference.is_dir() else FIGURES


def run(truth: Path, only: list[str] | None = None) -> list[Table]:
    """Every table of the folder; files that are absent are left out."""
    catalog = Catalog()
    models = Models(_read(truth / "configs.json") or {}, catalog)
    tables: list[Table] = []
    for file, score in ORACLE.items():
        content = _content(truth, file, only)
        if content is not None:
            tables += tables_of(file, score(content, models))
    subjects = Subjects(catalog, models)
    for file, judge in MACHINES.items():
        content = _content(truth, file, only)
        if content is not None:
            found = tables_of(file, judge(content, subjects, catalog))
            tables += sorted(found, key=lambda table: table.kind)
    return tables


def _content(truth: Path, file: str, only: list[str] | None) -> Any:
    return None if only and not _wanted(file, only) else _read(truth / file)


def _wanted(file: str, only: list[str]) -> bool:
    return any(file.removesuffix(".json") == name.removesuffix(".json") for name in only)


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("--truth", type=Path, default=None, help="folder of the truth tables")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", action="append", metavar="FILE", help="only this file (may be given again)")
    parser.add_argument(
        "--rows", action="store_true", help="list every row that is not exact, and its misses"
    )
    parser.add_argument("--match", default="", help="with --rows: only rows whose name holds this text")
    parser.add_argument("--misses", type=int, default=6, help="with --rows: misses shown of each row")
    parser.add_argument(
        "--slopes", action="store_true", help="list every series and message, not only those that are far off"
    )
    options = parser.parse_args(argv)
    truth = options.truth or truth_folder()
    if not truth.is_dir():
        print(f"no folder of truth tables at {truth}", file=sys.stderr)
        return 2
    tables = run(truth, options.only)
    if options.json:
        print(json.dumps({"tables": [table.figures() for table in tables]}, indent=1))
        return 0
    for table in tables:
        _print(table)
        if options.rows:
            _print_rows(table, options.match, options.misses)
    rows = [row for table in tables for row in table.rows]
    _print_lines("slopes within a series", list(slopes(rows)), options.slopes)
    _print_lines("tokens that messages name", list(capacities(rows)), options.slopes)
    return 0


def _print_lines(title: str, lines: list[Line], each: bool) -> None:
    if not lines:
        return
    print(f"{title}\n  {summary(lines)}")
    for line in lines:
        if each or abs(line.error) > WITHIN:
            print(f"  - {line.name} {line.error:+.2f} %  {line.note}")


def _print(table: Table) -> None:
    figures = table.figures()
    print(f"{table.file} · {table.kind}")
    shown = {key: value for key, value in figures.items() if key not in ("file", "kind", "inexpressible")}
    print("  " + "  ".join(f"{key} {_short(value)}" for key, value in shown.items() if value is not None))
    for reason, count in figures["inexpressible"].items():
        print(f"    {count:5d}  cannot express: {reason}")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _print_rows(table: Table, match: str, most: int) -> None:
    for row in table.rows:
        if (row.exact and row.close is not False) or match not in row.name:
            continue
        if row.reason is not None:
            if match:
                print(f"  - {row.name}: cannot express: {row.reason}")
            continue
        error = "" if row.error is None else f" {row.error:+.4f} %"
        print(f"  - {row.name}{error} {row.note}".rstrip())
        for miss in row.misses[:most]:
            print(f"      {miss.text}")
        if len(row.misses) > most:
            print(f"      … and {len(row.misses) - most} more")


if __name__ == "__main__":
    sys.exit(main())
