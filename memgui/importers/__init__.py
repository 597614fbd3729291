"""Readers of other people's model files: config.json, safetensors and GGUF headers.

Every file is hostile until proven otherwise: reads are bounded, lengths and counts are checked
against the file's size before anything is made of them, and whatever is wrong becomes one clear
sentence (:class:`memgui.files.bounded.FileFault`).
"""
