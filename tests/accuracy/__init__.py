"""The scoreboard: memgui against what real modules, allocators and people's machines held.

``python -m tests.accuracy --truth DIR [--json] [--only FILE]... [--rows] [--match TEXT]``
"""
