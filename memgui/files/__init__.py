"""Files of strangers read bounded, files of our own written whole or not at all.

What importers and presets share.  Reading never hangs and never believes a length; writing never
leaves half a file.  Whatever goes wrong is one sentence (:class:`memgui.files.bounded.FileFault`).
"""
