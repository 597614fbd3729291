"""What a closed section says of itself, and what an open one says where it has no field to show."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from memgui.document.result import Result
from memgui.document.view_settings import View
from memgui.gui.numbers import Numbers
from memgui.gui.texts import value_text
from memgui.spec import Scenario, get
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import counted

translate = QCoreApplication.translate


def summary(section: str, result: Result) -> str:
    """A few words on the section's values; empty where the title says enough."""
    scenario = result.scenario
    match section:
        case "model":
            return _model(result)
        case "workload":
            return _workload(scenario)
        case "precision":
            path = "training.precision" if scenario.task == "training" else "inference.weight_format"
            return _value(scenario, path)
        case "parallelism":
            return _parallelism(scenario)
        case "device":
            return _device(scenario)
        case "method":
            return _value(scenario, "method")
        case _:
            return ""


def nothing_here(section: str, scenario: Scenario) -> str:
    """Why an open section has no field; empty where it would rather not be shown at all."""
    if section == "parallelism" and scenario.device.count == 1:
        return translate("Form", "One device: nothing to split. Raise the count under Device.")
    if section == "precision" and scenario.method != "detailed":
        return translate("Form", "A rule of thumb has a precision and an optimizer of its own.")
    return ""


def _value(scenario: Scenario, path: str) -> str:
    field = BY_PATH[path]
    return value_text(field, get(scenario, path)) if field.applies(scenario) else ""


def _model(result: Result) -> str:
    model = result.scenario.model
    parts = []
    if result.estimate is not None:
        parts.append(Numbers.of(View()).parameters(result.estimate.parameters.own))
    parts.append(
        translate("Form", "{count} {count:layer|layers}").format(count=counted(model.num_hidden_layers))
    )
    heads, shared = model.num_attention_heads, model.num_key_value_heads
    if model.layer_types and not any("attention" in mixer for mixer in model.layer_types):
        pass  # a recurrence has none
    elif shared == heads:
        parts.append(translate("Form", "{heads} {heads:head|heads}").format(heads=counted(heads)))
    elif shared == 1:
        parts.append(translate("Form", "MQA {heads}/1").format(heads=heads))
    else:
        parts.append(translate("Form", "GQA {heads}/{shared}").format(heads=heads, shared=shared))
    return " · ".join(parts)


def _workload(scenario: Scenario) -> str:
    if scenario.task == "training":
        batch, length = scenario.training.micro_batch_size, scenario.training.sequence_length
    else:
        batch = scenario.inference.batch_size
        length = scenario.inference.prompt_tokens + scenario.inference.generated_tokens
    template = translate("Form", "{batch} × {length} {length:token|tokens}")
    return template.format(batch=counted(batch), length=counted(length))


def _parallelism(scenario: Scenario) -> str:
    count, split = scenario.device.count, scenario.parallelism
    if max(count, split.devices) == 1:
        return translate("Form", "1 GPU, not sharded")
    degrees = {
        "DP": split.data,
        "TP": split.tensor,
        "PP": split.pipeline,
        "CP": split.context,
        "EP": split.expert,
    }
    parts = [f"{name} {degree:,}" for name, degree in degrees.items() if degree > 1]
    if split.sharding != "none":
        parts.append(_value(scenario, "parallelism.sharding"))
    return " · ".join(filter(None, parts)) or translate("Form", "{count} GPUs, not split").format(
        count=f"{count:,}"
    )


def _device(scenario: Scenario) -> str:
    device = scenario.device
    return device.name if device.count == 1 else f"{device.count:,} × {device.name}"
