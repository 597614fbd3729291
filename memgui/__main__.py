"""`python -m memgui`: the same as the command `memgui`."""

from memgui.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
