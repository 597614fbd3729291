"""Figures of speed and memory: ``python -m tests.benchmarks [--json]``, in under 50 seconds.

A benchmark prints; it never fails because a machine is slow or shared.
"""
