"""What the catalog holds: one entry for each model and each device, with where its facts come from."""

from __future__ import annotations

import msgspec

from memgui.spec import Device, ModelSpec


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model as the catalog knows it.

    ``parameters`` is the number of weights (elements), tied ones counted once; ``aliases`` are other
    names under which :meth:`memgui.catalog.Catalog.model` finds the entry.
    """

    name: str
    aliases: tuple[str, ...] = ()
    family: str
    organisation: str
    parameters: int
    source: str
    spec: ModelSpec

    @property
    def title(self) -> str:
        """The name without the organisation it may begin with."""
        return self.name.rpartition("/")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it is found under: an alias counts with the organisation before it, too."""
        place = self.name.rpartition("/")[0]
        whole = (f"{place}/{alias}" for alias in self.aliases if place and "/" not in alias)
        return (self.title, self.name, *self.aliases, *whole)

    @property
    def size(self) -> str:
        """The parameter count as people say it: ``8.03B``."""
        return short_count(self.parameters)

    @property
    def model(self) -> ModelSpec:
        """The description, with its name and source filled in."""
        return msgspec.structs.replace(self.spec, name=self.title, source=self.source)


class DeviceEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An accelerator as the catalog knows it.

    ``memory_bytes`` is what a process is told it has in all; ``low_bytes`` and ``high_bytes`` bound it
    where it is not known exactly.  ``known`` says how: ``seen`` (read from a report of the device),
    ``recalled`` (a well-known figure, not read again) or ``derived`` (from the driver's total or the
    marketed size, as ``how`` says).
    """

    name: str
    aliases: tuple[str, ...] = ()
    vendor: str
    kind: str
    year: int
    marketed_gb: int
    memory_bytes: int
    low_bytes: int
    high_bytes: int
    known: str
    how: str
    compute_capability: str = ""
    bandwidth_gb_s: int = 0
    note: str = ""
    source: str

    def device(self, count: int = 1) -> Device:
        """``count`` of these as a scenario's device."""
        return Device(
            name=self.name,
            memory_bytes=self.memory_bytes,
            count=count,
            compute_capability=self.compute_capability,
        )


def short_count(number: int) -> str:
    """``number`` in K, M, B or T with three figures: 8030261248 is ``8.03B``."""
    for unit, power in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if number >= power:
            scaled = number / power
            places = 0 if scaled >= 100 else 1 if scaled >= 10 else 2
            return f"{scaled:.{places}f}{unit}"
    return str(number)
