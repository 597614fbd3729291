"""What memgui keeps on disk for a person: presets, settings, the open session, recent files, the log.

Every file is written whole or not at all, read bounded and strictly, and never deleted for being
unreadable.  Nothing here imports Qt; whatever goes wrong is a
:class:`~memgui.files.bounded.FileFault` whose text is one sentence.
"""
