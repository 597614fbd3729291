"""The four tables of the oracle: real modules, counted tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memgui.spec import ModelSpec
from tests.accuracy.express import Inexpressible, Models, ledger_of, scenario_with
from tests.accuracy.score import Miss, Row, compare, compare_mapping, percent

PRECISION = {"bf16": "bf16", "fp32": "fp32", "fp16": "fp16", "amp": "bf16_mixed", "amp_bf16w": "bf16_mixed"}
_BASE = {"bf16": "bf16", "fp32": "fp32", "fp16": "fp16", "amp": "fp32", "amp_bf16w": "bf16"}
# the oracle's tensors are fake, so that a position beyond the table of positions went unnoticed
NO_KERNEL_RAN = frozenset({"beyond_longest"})
_FUSED_QKV_NAMES = {
    "gpt2": "c_attn",
    "gpt_bigcode": "c_attn",
    "phi3": "qkv_proj",
    "falcon": "query_key_value",
    "bloom": "query_key_value",
    "gpt_neox": "query_key_value",
}
_QV_NAMES = {"bert": ("query", "value"), "roberta": ("query", "value"), "t5": ("q", "v")}


def params(truth: Mapping[str, Any], models: Models) -> Iterator[Row]:
    """Parameters of every model: total, active and each part."""
    for name, entry in truth["models"].items():
        try:
            counted = ledger_of(scenario_with(models(name), {"training.sequence_length": 1})).parameters
        except Inexpressible as reason:
            yield Row("params", name, str(reason))
            continue
        misses = compare(
            [
                ("total", entry["total_params"], counted.total),
                ("active", entry.get("active_params"), counted.active),
                *compare_mapping("", entry["by_category"], counted.by_part),
            ]
        )
        yield Row(
            "params",
            name,
            errors=(percent(counted.total, entry["total_params"]),),
            exact=not misses,
            misses=misses,
        )


def kv_cache(truth: Mapping[str, Any], models: Models) -> Iterator[Row]:
    """Bytes of the cache after a prompt and after one more token, both in bf16."""
    for name, entry in truth["models"].items():
        for run in entry["runs"]:
            row = f"{name} B={run['B']} S={run['S']} {run['attn']}"
            settings = {
                "task": "inference",
                "inference.batch_size": run["B"],
                "inference.prompt_tokens": run["S"],
                "inference.generated_tokens": 1,
                "inference.attention": run["attn"] or "sdpa",
            }
            try:
                model = models(name)
                if model.num_encoder_layers:  # the oracle gave the decoder the same tokens
                    settings["inference.decoder_prompt_tokens"] = run["S"]
                held = ledger_of(scenario_with(model, settings, NO_KERNEL_RAN)).cache
            except Inexpressible as reason:
                yield Row("kv_cache", row, str(reason))
                continue
            more = (run.get("after_one_more_token") or {}).get("total_bytes")
            pairs = [
                ("after the prompt", run["total_bytes"], held.after_prompt),
                ("one more token", more, held.after_one_more),
            ]
            yield Row(
                "kv_cache",
                row,
                errors=tuple(
                    percent(got or 0, expected) for _, expected, got in pairs if expected is not None
                ),
                exact=not compare(pairs),
                misses=compare(pairs),
            )


def training_settings(run: Mapping[str, Any], model: ModelSpec) -> dict[str, Any]:
    """The fields that a run of ``activations.json`` or ``peak.json`` sets."""
    settings: dict[str, Any] = {
        "training.micro_batch_size": run["B"],
        "training.sequence_length": run["S"],
        "training.precision": PRECISION[run["prec"]],
        "training.attention": run["attn"] or "sdpa",
        "training.sdpa_backend": run.get("sdp", "auto"),
        "training.torch_version": "2.13",
        "training.activation_checkpointing": "full" if run["ckpt"] else "none",
        "training.dropout": run["dropout"],
        "training.padding_mask": run.get("padding_mask", False),
        "training.use_cache": run.get("use_cache", False),
        "training.keep_outputs": run.get("keep_outputs", False),
        "training.gradient_clipping": run.get("clip", False),
        "training.gradient_accumulation_steps": run.get("accum", 1),
    }
    if run.get("optim") == "sgd":
        settings["training.optimizer"] = "sgd"
    elif run.get("optim"):
        settings["training.optimizer_implementation"] = run["optim"]
    if run["lora"]:
        base = _BASE[run["prec"]]
        settings |= {
            "training.method": "lora",
            "training.lora.rank": 16,
            "training.lora.target_modules": _targets(run["lora"], model),
            "training.lora.dropout": run.get("lora_dropout", 0.0),
            "training.lora.adapter_format": "fp32" if run.get("lora_adapter_fp32", True) else base,
            "training.base_format": base,
        }
    return settings


def _targets(which: str, model: ModelSpec) -> tuple[str, ...]:
    if which == "all":
        return ("all-linear",)
    fused = _FUSED_QKV_NAMES.get(model.model_type)
    return (fused,) if fused else _QV_NAMES.get(model.model_type, ("q_proj", "v_proj"))


def activations(truth: Mapping[str, Any], models: Models) -> Iterator[Row]:
    """Bytes autograd saves for backward, by layer and by part."""
    for name, entry in truth["archs"].items():
        changes = dict(entry["layers_built"])
        if entry.get("layer_types"):
            changes["layer_types"] = entry["layer_types"]
        for run in entry["runs"]:
            yield _saved_row(name, changes, run, models)


def _saved_row(name: str, changes: Mapping[str, Any], run: Mapping[str, Any], models: Models) -> Row:
    row = f"{name} {_words(run)}"
    try:
        model = models(name, changes)
        held = ledger_of(scenario_with(model, training_settings(run, model), NO_KERNEL_RAN))
    except Inexpressible as reason:
        return Row("activations", row, str(reason))
    pairs: list[tuple[str, int | None, int | None]] = [
        ("trainable_params", run["trainable_params"], held.parameters.trainable),
        ("saved_weight_casts", run["saved_weight_casts"], held.saved_weight_casts),
        ("saved_total", run["saved_total"], held.saved_total),
        *compare_mapping("", run["by_part"], held.saved_by_part()),
    ]
    stacks = list(held.saved_by_layer().values())
    for index, (stack, layers) in enumerate(run["by_layer"].items()):
        mine = stacks[index] if index < len(stacks) else ()
        for layer, expected in enumerate(layers):
            pairs.append((f"{stack}[{layer}]", expected, mine[layer] if layer < len(mine) else None))
    misses = compare(pairs)
    return Row(
        "activations",
        row,
        errors=(percent(held.saved_total, run["saved_total"]),),
        exact=not misses,
        misses=misses,
    )


def _words(run: Mapping[str, Any]) -> str:
    shown = [f"B={run['B']}", f"S={run['S']}", run["prec"], str(run["attn"])]
    shown += [f"dropout={run['dropout']}"] if run["dropout"] else []
    shown += ["ckpt"] if run["ckpt"] else []
    if run["lora"]:
        shown += [f"lora={run['lora']}"]
        shown += [] if run.get("lora_adapter_fp32", True) else ["adapters-as-base"]
        shown += [f"lora_dropout={run['lora_dropout']}"] if run.get("lora_dropout") else []
    for flag in ("padding_mask", "use_cache", "clip", "keep_outputs"):
        shown += [flag] if run.get(flag) else []
    shown += [f"sdp={run['sdp']}"] if run.get("sdp", "auto") != "auto" else []
    shown += [run["optim"]] if run.get("optim") else []
    shown += [f"accum={run['accum']}"] if run.get("accum", 1) != 1 else []
    return " ".join(shown)


MOMENTS = (
    "start",
    "after_forward",
    "after_backward",
    "grad_bytes",
    "after_step",
    "optimizer_state_bytes",
    "after_zero_grad",
)
PHASE_TOLERANCE_PCT = 0.5


def peak(truth: Mapping[str, Any], models: Models) -> Iterator[Row]:
    """Live bytes at the named moments of both steps, and the peak of each phase."""
    for run in truth["runs"]:
        yield _peak_row(run, models)


def _peak_row(run: Mapping[str, Any], models: Models) -> Row:
    row = f"{run['model']} {_words(run)}"
    changes = run["layers"] if isinstance(run["layers"], dict) else {}
    try:
        model = models(run["model"], changes)
        steps = ledger_of(scenario_with(model, training_settings(run, model), NO_KERNEL_RAN)).steps
    except Inexpressible as reason:
        return Row("peak", row, str(reason))
    pairs: list[tuple[str, int | None, int | None]] = []
    phases: list[Miss] = []
    close = True
    for number, (expected, got) in enumerate(zip(run["steps"], steps, strict=True), 1):
        pairs += [
            (f"step {number} {moment}", expected.get(moment), getattr(got, moment, None))
            for moment in MOMENTS
        ]
        for phase, entry in expected["phases"].items():
            mine = got.phases.get(phase)
            # nothing is allocated in clipping that the phases beside it do not hold
            if mine is None and phase == "clip":
                continue
            if mine is None:
                close = False
                phases.append(Miss(f"step {number} {phase} peak", entry["peak"], None))
            elif mine != entry["peak"]:
                close = close and abs(percent(mine, entry["peak"])) <= PHASE_TOLERANCE_PCT
                phases.append(Miss(f"step {number} {phase} peak at {entry['op']}", entry["peak"], mine))
    misses = compare(pairs)
    second = run["steps"][1]["peak"]
    return Row(
        "peak",
        row,
        errors=(percent(max(steps[1].phases.values(), default=0), second),),
        exact=not misses,
        close=close,
        misses=(*misses, *phases),
    )
