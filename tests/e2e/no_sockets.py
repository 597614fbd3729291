"""A day's work of the program in a process that the kernel ends at its first socket.

    python -m tests.e2e.no_sockets FOLDER

The filter (seccomp) covers Python and Qt alike.  Linux on x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import sys
from pathlib import Path

SOCKET = {"x86_64": 41, "aarch64": 198}
ALLOW, KILL = 0x7FFF0000, 0x80000000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2


def forbid() -> None:
    """End this process at its next call of socket(2)."""
    number = SOCKET[platform.machine()]
    rows = ((LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (RETURN, 0, 0, KILL), (RETURN, 0, 0, ALLOW))
    program = b"".join(struct.pack("HBBI", *row) for row in rows)
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SET_SECCOMP, FILTER, header, 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


def work(folder: Path) -> None:
    """Start, open files of every kind, look what is on this machine, save, share, report, start again."""
    from PySide6.QtWidgets import QApplication

    from memgui.app import Program
    from memgui.presets.paths import AppPaths
    from tests.importers.files import gguf_llama, llama, number, sparse, write_shards

    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    shards = folder / "model"
    shards.mkdir()
    (shards / "config.json").write_text(json.dumps({**config, "vocab_size": 100, "intermediate_size": 128}))
    write_shards(shards, llama(2, 64, 128, 64, 100), 2)
    more = [number("llama.attention.head_count", 8), number("llama.feed_forward_length", 512)]
    header, size = gguf_llama(2, 256, 512, 40, more=more)
    paths = AppPaths.default(home=folder / "home")
    app = QApplication([])
    for opened in (shards, shards / "config.json", sparse(folder / "m.gguf", header, size)):
        program = Program(app, paths)
        program.window.show()
        program.furnish()
        library, document = program.context.library, program.context.document
        library.open_path(opened)
        library.nearby.look_for_models()
        library.nearby.look_at_machine()
        assert program.interior is not None
        program.interior.actions.diagnostics.trigger()
        jobs = program.context.jobs
        while any(jobs.is_running(kind) for kind in ("open", "local models", "this machine", "diagnostics")):
            app.processEvents()
        assert document.settle().estimate is not None
        assert document.scenario.model.num_hidden_layers == 2
        library.save_as(f"Saved {opened.name}")
        assert library.open_text(library.shared_text())
        for action in (program.interior.actions.copy_share, program.interior.actions.copy_verdict):
            action.trigger()
        app.processEvents()
        program.window.close()
        program.close()


def main() -> None:
    forbid()
    if sys.argv[1:] == ["--prove"]:
        import socket

        socket.socket()
        return
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    work(Path(sys.argv[1]))
    print("no socket was opened")


if __name__ == "__main__":
    main()
