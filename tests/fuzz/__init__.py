"""Files of strangers, damaged at random: `python -m tests.fuzz --count 100000`, a fiftieth in the tests."""
