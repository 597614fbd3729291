"""Prints what becomes of every collected config.json, and which of Transformers' text models are described.

    python -m tests.importers.score [FOLDER]

FOLDER is the reference folder (``MEMGUI_SHARED`` or ``../shared`` unless given).  Each file is *exact* (the
count is that of Transformers' own modules, or the published one), *explained* (no module count is known and
the difference to the published one has a reason that follows from the file), *uncounted* (nobody published a
count), or *off*.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from memgui.files.bounded import FileFault
from memgui.importers.class_defaults import class_defaults
from memgui.importers.families import FAMILIES
from memgui.importers.hf_config import import_config
from memgui.spec import ModelSpec
from memgui.spec.model import pattern_at
from tests.importers.parameters import count

SHARED = Path(os.environ.get("MEMGUI_SHARED", Path(__file__).parents[3] / "shared"))
TEXT_TYPES = Path(__file__).parent / "text_types.json"


class Line(NamedTuple):
    """One file's outcome."""

    file: str
    outcome: str
    counted: int
    meant: int | None
    reason: str = ""


def score(folder: Path) -> list[Line]:
    """A line for each file that the folder's index lists."""
    rows = json.loads((folder / "INDEX.json").read_text("utf-8"))["configs"]
    return [_line(folder / row["file"], row) for row in rows]


def _line(path: Path, row: dict[str, Any]) -> Line:
    try:
        model = import_config(path).model
    except FileFault as fault:
        return Line(path.name, "refused", 0, None, str(fault))
    counted = sum(count(model).values())
    truth = row.get("module_params")
    if truth is not None:
        return Line(path.name, "exact" if counted == truth else "off", counted, truth)
    meant = row.get("published_params")
    if meant is None:
        return Line(path.name, "uncounted", counted, None, "no count is published for this checkpoint")
    if counted == meant:
        return Line(path.name, "exact", counted, meant)
    reason = _reason(meant - counted, model, json.loads(path.read_text("utf-8")), row)
    return Line(path.name, "explained" if reason else "off", counted, meant, reason)


def _reason(more: int, m: ModelSpec, config: dict[str, Any], row: dict[str, Any]) -> str:
    """Why the published count has ``more`` elements than the model; empty where nothing says so."""
    if m.tie_word_embeddings and more == m.vocab_size * m.hidden_size:
        return "the checkpoint stores the tied head once more"
    if 0 < more <= 512 and not more % 8:
        return "rotary frequencies are stored as a buffer"
    sparse = sum(pattern_at(m.mlp_layer_types, i, "sparse") == "sparse" for i in range(m.num_hidden_layers))
    balance = m.num_experts * sparse if m.router_correction_bias else 0
    if balance and 0 <= more - balance <= 64 * m.num_hidden_layers:
        return f"the routers' balances ({balance:,}) and small buffers are stored"
    text = next(
        (config[key] for key in ("text_config", "llm_config") if isinstance(config.get(key), dict)), config
    )
    further = text.get("num_nextn_predict_layers") or text.get("num_mtp_modules") or 0
    if isinstance(further, int) and further > 0 and more > 0:
        layer = count(m)
        one = (
            sum(layer.values()) - layer.get("embedding", 0) - layer.get("lm_head", 0)
        ) / m.num_hidden_layers
        if more <= 1.25 * further * one + 3 * m.hidden_size**2 * further + m.vocab_size * m.hidden_size * 2:
            return f"the checkpoint has {further} layers that predict further tokens"
    if more < 0 and ("quantization_config" in config or "quantization" in config or row.get("quant")):
        return "the published count is of packed elements"
    towers = any(isinstance(config.get(key), dict) for key in ("vision_config", "audio_config"))
    towers = towers and not {"vision", "audio"} & set(count(m))
    gates = _gates(m, text)
    if gates and 0 < more - gates < LARGEST_TOWER:
        return f"gates of full rank ({gates:,}), the tower and attention residuals are not described"
    if towers and 0 < more < LARGEST_TOWER:
        return "the towers of this checkpoint's own code are not described"
    return ""


LARGEST_TOWER = 1_100_000_000
"""Gemma 3n's MobileNet and its encoder of sound come to 1.0 billion; towers of images alone to less."""


def _gates(m: ModelSpec, text: dict[str, Any]) -> int:
    """What Kimi-K3's gates have beyond Kimi-Linear's: matrices of full rank, also behind latent attention."""
    linear = text.get("linear_attn_config") or {}
    wide = m.linear_num_value_heads * m.linear_value_head_dim
    full = m.hidden_size * wide
    low_rank = m.linear_value_head_dim * (m.hidden_size + wide)
    kinds = [pattern_at(m.layer_types, i, "full_attention") for i in range(m.num_hidden_layers)]
    recurrent = (full - low_rank) * kinds.count("kda") if linear.get("use_full_rank_gate") else 0
    latent = m.hidden_size * m.num_attention_heads * m.v_head_dim if text.get("mla_use_output_gate") else 0
    return recurrent + latent * kinds.count("full_attention")


def coverage() -> tuple[list[str], list[str], list[str]]:
    """Text model types of Transformers: counted exactly at its defaults, described, not described."""
    exact, described, other = [], [], []
    for model_type, row in sorted(json.loads(TEXT_TYPES.read_text("utf-8"))["types"].items()):
        inner = {model_type, row.get("text", model_type)}
        if not inner & set(FAMILIES):
            other.append(model_type)
            continue
        described.append(model_type)
        if row["parameters"] is not None and _at_defaults(model_type) == row["parameters"]:
            exact.append(model_type)
    return exact, described, other


def _at_defaults(model_type: str) -> int | None:
    """Parameters of the type with what its class declares; ``None`` where that describes no model."""
    known = class_defaults(model_type)
    if known is None:
        return None
    try:
        return sum(count(import_config({"model_type": model_type, **known.defaults}).model).values())
    except FileFault:
        return None


def main() -> None:
    folder = (Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED) / "data" / "hf_configs"
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not there: name the reference folder")
    lines = score(folder)
    for line in lines:
        difference = "" if line.meant is None else f"{line.counted - line.meant:+,}"
        meant = "" if line.meant is None else f"{line.meant:,}"
        figures = f"{line.counted:>20,} {meant:>20} {difference:>18}"
        print(f"{line.outcome:<10} {line.file[:60]:<60} {figures}  {line.reason}")
    outcomes = Counter(line.outcome for line in lines)
    print(f"{len(lines)} files: " + ", ".join(f"{number} {name}" for name, number in outcomes.most_common()))
    exact, described, other = coverage()
    print(
        f"{len(described) + len(other)} text model types in Transformers: {len(described)} described "
        f"({len(exact)} of them exact at their class's defaults), {len(other)} open as the nearest family"
    )
    print("described:", " ".join(described))
    print("as the nearest:", " ".join(other))


if __name__ == "__main__":
    main()
