"""Fields edited as one: devices and the degrees that multiply to them, a method and what it needs."""

from __future__ import annotations

import math
from typing import Any, Final

from memgui.estimator.targets import TARGETS, usual_targets, with_usual_targets
from memgui.spec import Scenario, get, replace
from memgui.spec.methods import VARIANTS
from memgui.spec.scenario import Lora
from memgui.spec.validate_layout import taking as taking

COUNT: Final = "device.count"
DEGREES: Final = tuple(f"parallelism.{name}" for name in ("data", "tensor", "pipeline", "context"))


def together(scenario: Scenario, path: str, value: Any) -> dict[str, Any]:
    """``path`` set to ``value``, and what has to follow so that the degrees still multiply to the devices.

    They are left alone where they did not before, and where no whole degree would do: then the
    person is told (``memgui.spec.validate_layout``).  Another method takes its own default variant, and
    adapters that nobody placed go on layers that the model has.
    """
    values = {path: value}
    if path.startswith("model.") or (path, value) == ("training.method", "lora"):
        return values | _targets(scenario, replace(scenario, path, value))
    if path == "method" and scenario.method_variant not in (None, *VARIANTS.get(value, ())):
        return values | {"method_variant": None}
    degrees = {one: get(scenario, one) for one in DEGREES}
    count = scenario.device.count
    if path not in (COUNT, *DEGREES) or scenario.parallelism.devices != count:
        return values
    free = taking(scenario)
    if path == COUNT and value == 1:
        return values | {one: 1 for one, degree in degrees.items() if degree > 1}
    if path == COUNT:
        others = math.prod(degree for one, degree in degrees.items() if one != free)
        if value % others == 0:
            values[free] = value // others
        return values
    degrees[path] = value
    others = math.prod(degree for one, degree in degrees.items() if one != free)
    if path != free and degrees[free] > 1 and count % others == 0:
        values[free] = count // others  # the devices stay
    elif path != free and degrees[free] > 1:
        values |= {free: 1, COUNT: others}
    else:
        values[COUNT] = others * degrees[free]
    return values


def _targets(before: Scenario, after: Scenario) -> dict[str, Any]:
    """What adapters go on now, where that follows from another model or from their being chosen."""
    present, usual = get(after, TARGETS), usual_targets(after.model)
    if present == usual:
        return {}
    if before.model == after.model:
        gone = present == Lora().target_modules and not set(present) & set(usual)
        return {TARGETS: usual} if gone else {}
    chosen = get(with_usual_targets(after, before.model), TARGETS)
    return {} if chosen == present else {TARGETS: chosen}
