"""What a model has beside its language model: towers for images and sound, and what joins them to it.

A tower is described by its weights alone, as its code in Transformers (or the checkpoint's own) makes them.
The activations of images and sound are not counted: how many there are is for the input to say.
"""

from __future__ import annotations

from memgui.importers.towers import audio, joining, speech, vision
from memgui.importers.towers.registry import read_towers

__all__ = ["audio", "joining", "read_towers", "speech", "vision"]
