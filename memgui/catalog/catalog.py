"""The built-in models and devices, read from ``resources/catalog`` when first asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import msgspec

from memgui._resources import root
from memgui.catalog.entries import DeviceEntry, ModelEntry
from memgui.catalog.search import Index, key, kin
from memgui.spec import QT_TRANSLATE_NOOP, Message, ModelSpec, Scenario

FIRST_MODEL = "meta-llama/Meta-Llama-3.1-8B"
FIRST_DEVICE = "H100 SXM5 80GB"


class UnknownName(LookupError):
    """A name that the catalog does not have; ``near`` are those it may have been meant for."""

    def __init__(self, message: Message, near: tuple[str, ...]) -> None:
        super().__init__(message.text)
        self.message = message
        self.near = near


class Catalog:
    """Built-in models and devices.  Nothing is read before it is asked for, and each file once."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` holds ``models.json`` and ``devices.json``; memgui's own unless given."""
        self._folder = folder

    @cached_property
    def models(self) -> tuple[ModelEntry, ...]:
        """Every model, in order of family and size."""
        return msgspec.json.decode(self._read("models.json"), type=tuple[ModelEntry, ...])

    @cached_property
    def devices(self) -> tuple[DeviceEntry, ...]:
        """Every device: data centre, workstation, consumer, the rest; newest first."""
        return msgspec.json.decode(self._read("devices.json"), type=tuple[DeviceEntry, ...])

    def model(self, name: str) -> ModelEntry:
        """The model called ``name``, in any case; :class:`UnknownName` lists near matches."""
        found = self._models.get(name)
        if found is None:
            raise _unknown(
                QT_TRANSLATE_NOOP("messages", "There is no built-in model called {name}."),
                QT_TRANSLATE_NOOP("messages", "There is no built-in model called {name}; there is {near}."),
                name,
                self._models.near(name),
            )
        return found

    def kin(self, name: str) -> ModelEntry | None:
        """The base or tuned version that stands here of the model called ``name``, which does not.

        ``meta-llama/Llama-3.1-8B-Instruct`` has the layers of ``Llama-3.1-8B``, and so has what was trained
        on from it at a later date; the other way round a date may stand for another model.  Where versions
        differ in size there is none.
        """
        organisation, _, title = name.rpartition("/")
        versions = self._kin.get(kin(title)) or self._kin.get(kin(title, dates=False), [])
        found = [entry for place, entry in versions if not organisation or key(organisation) == key(place)]
        return found[0] if len({entry.parameters for entry in found}) == 1 else None

    def device(self, name: str) -> DeviceEntry:
        """The device called ``name``, in any case; :class:`UnknownName` lists near matches."""
        found = self._devices.get(name)
        if found is None:
            raise _unknown(
                QT_TRANSLATE_NOOP("messages", "There is no built-in device called {name}."),
                QT_TRANSLATE_NOOP("messages", "There is no built-in device called {name}; there is {near}."),
                name,
                self._devices.near(name),
            )
        return found

    def search(self, text: str, limit: int = 50) -> list[ModelEntry]:
        """Models that answer what was typed so far, best first."""
        return self._models.search(text, limit)

    def alike(self, text: str, most: int = 12) -> list[ModelEntry]:
        """Models that share words with a name that none has."""
        return self._models.alike(text, most)

    def search_devices(self, text: str, limit: int = 50) -> list[DeviceEntry]:
        """Devices that answer what was typed so far, best first."""
        return self._devices.search(text, limit)

    def first_model(self) -> ModelSpec:
        """The model of the first start."""
        # By its exact name: the index of all names, which a search needs, would cost the start 10 ms.
        return next(entry for entry in self.models if entry.name == FIRST_MODEL).model

    def first_scenario(self) -> Scenario:
        """What the first start shows: Llama-3.1-8B, full fine-tuning on one H100."""
        device = next(entry for entry in self.devices if entry.name == FIRST_DEVICE)
        return Scenario(model=self.first_model(), device=device.device())

    @cached_property
    def _models(self) -> Index[ModelEntry]:
        return Index(
            (entry, entry.names, (entry.family, entry.organisation, entry.size)) for entry in self.models
        )

    @cached_property
    def _kin(self) -> dict[str, list[tuple[str, ModelEntry]]]:
        """Entries by what their versions have in common, each with the place in its name."""
        found: dict[str, list[tuple[str, ModelEntry]]] = {}
        for entry in self.models:
            for common in {kin(name) for name in entry.names} - {""}:
                found.setdefault(common, []).append((entry.name.rpartition("/")[0], entry))
        return found

    @cached_property
    def _devices(self) -> Index[DeviceEntry]:
        return Index(
            (entry, (entry.name, *entry.aliases), (entry.vendor, entry.kind, f"{entry.marketed_gb}gb"))
            for entry in self.devices
        )

    def _read(self, file: str) -> bytes:
        folder = self._folder if self._folder is not None else root() / "catalog"
        return (folder / file).read_bytes()


def _unknown(plain: str, with_near: str, name: str, near: tuple[str, ...]) -> UnknownName:
    shown = name if len(name) <= 80 else name[:80] + "…"
    if not near:
        return UnknownName(Message(plain, {"name": shown}), ())
    return UnknownName(Message(with_near, {"name": shown, "near": ", ".join(near)}), near)
