"""Writes text_types.json: the text models that Transformers knows, and their parameters at their defaults.

Run it where Transformers and PyTorch are installed, from the root of a checkout:

    python -m tests.importers.make_text_types

Nothing is allocated: modules are made on PyTorch's ``meta`` device.  A type whose defaults make no model has
no count.
"""

import json
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "text_types.json"
HEADS = {"seq2seq": "SEQ_TO_SEQ_CAUSAL_LM", "causal": "CAUSAL_LM", "masked": "MASKED_LM"}


def parameters(class_name: str, model_type: str) -> int | None:
    """Parameters (elements) of the model with its class's defaults, tied weights once."""
    torch, transformers = import_module("torch"), import_module("transformers")
    auto = import_module("transformers.models.auto.configuration_auto")
    try:
        with torch.device("meta"):
            model = getattr(transformers, class_name)(auto.CONFIG_MAPPING[model_type]())
    except Exception:  # classes whose defaults contradict each other, or need another package
        return None
    return int(sum(parameter.numel() for parameter in model.parameters()))


def text_type(model_type: str) -> str | None:
    """The ``model_type`` of the language model within a model of several senses, by its class's defaults."""
    auto = import_module("transformers.models.auto.configuration_auto")
    try:
        inner = getattr(auto.CONFIG_MAPPING[model_type](), "text_config", None)
    except Exception:  # classes without defaults
        return None
    return getattr(inner, "model_type", None)


def main() -> None:
    auto = import_module("transformers.models.auto.modeling_auto")
    types: dict[str, Any] = {}
    for head, mapping in HEADS.items():
        names = getattr(auto, f"MODEL_FOR_{mapping}_MAPPING_NAMES")
        for model_type, named in names.items():
            class_name = named if isinstance(named, str) else named[0]
            if model_type not in types:
                types[model_type] = {"head": head, "parameters": parameters(class_name, model_type)}
                if text := text_type(model_type):
                    types[model_type]["text"] = text
    found = {"source": f"Transformers {version('transformers')}", "types": dict(sorted(types.items()))}
    TARGET.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(f"{len(types)} text model types")


if __name__ == "__main__":
    main()
