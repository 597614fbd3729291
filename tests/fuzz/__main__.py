"""Read damaged files by the thousand: each must give a value or one clear sentence, in bounds.

    python -m tests.fuzz --count 100000            every format
    python -m tests.fuzz --format gguf --only 1234  one input again, with its traceback

No input may take a second (an input that did is timed again, so that a busy machine is not blamed) or
make the process grow by 64 MiB.  Exit status 1 if one did, or if a reader answered with anything else.
"""

import argparse
import contextlib
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from memgui.files.bounded import FileFault
from tests.fuzz.mutate import File, mutate
from tests.fuzz.targets import Target, make_targets

MAX_SECONDS = 1.0
MAX_GROWTH = 64 * 2**20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="inputs of each format")
    parser.add_argument("--format", action="append", help="only this format (several times for several)")
    parser.add_argument("--only", type=int, help="only the input of this number")
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="memgui-fuzz-") as name:
        targets = make_targets(Path(name))
        for chosen in arguments.format or targets:
            failures += run(chosen, targets[chosen], Path(name), arguments.count, arguments.only)
    return 1 if failures else 0


def run(name: str, target: Target, folder: Path, count: int, only: int | None) -> int:
    """Read ``count`` mutated files of one format and print the figures; the number of failures."""
    path = folder / target.file_name
    for seed in target.seeds:  # so that what is loaded once is not taken for growth
        answer(target, write(path, seed))
    forget_peak()
    before = peak()
    accepted = failures = 0
    slowest = 0.0
    sentences: Counter[str] = Counter()
    started = time.process_time()
    for number in range(count) if only is None else (only,):
        random = Random(f"{name} {number}")
        seed = random.choice(target.seeds)
        write(path, mutate(seed, target.seeds, random, target.is_json, target.is_framed))
        start = time.process_time()
        try:
            template = answer(target, path)
            took = time.process_time() - start
            if took > MAX_SECONDS:
                start = time.process_time()
                answer(target, path)
                took = min(took, time.process_time() - start)
            slowest = max(slowest, took)
            assert took <= MAX_SECONDS, f"took {took:.2f} s"
            assert peak() - before <= MAX_GROWTH, f"grew by {(peak() - before) / 2**20:.0f} MiB"
        except Exception:
            failures += 1
            if failures <= 5:
                print(f"{name} {number}: {traceback.format_exc()}", file=sys.stderr)
        else:
            if template:
                sentences[template] += 1
            else:
                accepted += 1
    took = time.process_time() - started
    refused = sum(sentences.values())
    print(
        f"{name}: {accepted + refused + failures:,} inputs from {len(target.seeds)} files: "
        f"{accepted:,} read, {refused:,} refused in {len(sentences)} different sentences, "
        f"{failures} failures; slowest {slowest * 1e3:.0f} ms, "
        f"growth {(peak() - before) / 2**20:.1f} MiB, {took:.0f} s in all",
        flush=True,
    )
    return failures


def answer(target: Target, path: Path) -> str:
    """The template of the fault that the reader raises, held to be one sentence that names the file.

    ``""`` where the reader gives a value.
    """
    try:
        target.read(path)
    except FileFault as fault:  # kept no longer than this: it holds every frame it passed, and their data
        file, said, template = fault.file, str(fault), fault.message.template
    else:
        return ""
    assert said.isprintable(), said
    assert 10 < len(said) < 1_500, said
    assert said.endswith("."), said
    assert file in said, said
    return template


def write(path: Path, file: File) -> Path:
    with path.open("wb") as stream:
        stream.write(file.start)
        stream.truncate(len(file.start) + file.rest)
    return path


def forget_peak() -> None:
    """Let :func:`peak` begin anew at what is held now, where the system can (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most memory that this process has held so far (bytes)."""
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of macOS, in bytes


if __name__ == "__main__":
    sys.exit(main())
