"""A checkpoint's weights in PyTorch.

What a reader could break: a file's header is checked before anything is made of it, since the file may come from anywhere.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._binary import HaulError, run

if TYPE_CHECKING:
    import torch

HEADER_LIMIT = 100 << 20
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


@dataclass(frozen=True)
class Loaded:
    """A checkpoint: its tensors by name, the PyTorch model that computes the same, and the settings that it was trained with."""

    state: dict[str, "torch.Tensor"]
    model: "torch.nn.Module"
    settings: dict[str, Any]
    metadata: dict[str, str]


def load(path: str | Path) -> Loaded:
    """Reads a checkpoint of `haul train` (a .safetensors file, or a run folder, of which the best is taken) into PyTorch, or one of
    `haul.policies()` by its name: `haul.load("cvrp20")`.

    `model(xy, demand)` routes a batch greedily: xy [B, N+1, 2] on the unit square, demand [B, N+1] as shares of the capacity, 0 for
    the depot; it returns the tours [B, T] and their lengths [B]. `state` has the weights by Haul's names (docs/parameters.md), without the optimizer's; `model` is the model of gt_torch.py, or of
    ad_torch.py for an agent, with those weights in it, ready to evaluate or to train on. Nothing of the file is executed.
    """
    name, path = str(path), Path(path)
    if path.is_dir():
        path = path / "best.safetensors"
    if not path.exists() and path.suffix == "" and len(path.parts) == 1:
        with tempfile.TemporaryDirectory(prefix="haul") as folder:
            path = Path(folder) / "policy.safetensors"
            run("policies", name, "--out", str(path))
            metadata, tensors = read(path)
        path = Path(name)
    else:
        metadata, tensors = read(path)
    kind = metadata.get("haul.model")
    if kind is None:
        raise HaulError(f"{path} is no checkpoint of haul: its metadata has no haul.model")
    settings = settings_of(metadata["haul.config"])
    if kind == "AD":
        model = import_module(".ad_torch", __package__).of(tensors, int(settings["tf_n_head"]))
    elif kind == "GT+RL":
        model = import_module(".gt_torch", __package__).of(tensors, settings)
    else:
        raise HaulError(f"{path} holds model {kind}, which has no twin in PyTorch")
    model.eval()
    return Loaded(tensors, model, settings, metadata)


def settings_of(text: str) -> dict[str, Any]:
    """Settings are YAML; the program itself turns them into JSON."""
    with tempfile.TemporaryDirectory(prefix="haul") as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(text, encoding="utf-8")
        result = json.loads(run("config", "show", "--config", str(file), "--json").stdout)
    assert isinstance(result, dict)
    return result


def read(path: Path) -> tuple[dict[str, str], dict[str, "torch.Tensor"]]:
    """A safetensors file's metadata and its weights."""
    try:
        import torch
    except ImportError:
        raise HaulError("haul.load needs PyTorch: pip install torch") from None
    kinds = {
        "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
        "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    }  # fmt: skip
    try:
        data = path.read_bytes()
    except OSError as e:
        raise HaulError(f"{path} cannot be read: {e.strerror}") from None
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(HEADER_LIMIT, len(data) - 8):
        raise HaulError(f"{path} is no safetensors file: its header would end after the file")
    try:
        header = json.loads(data[8 : 8 + size])
        metadata = dict(header.pop("__metadata__", {}))
        body = memoryview(data)[8 + size :]
        tensors: dict[str, torch.Tensor] = {}
        for name, t in header.items():
            begin, end = t["data_offsets"]
            count = 1
            for d in t["shape"]:
                count *= d
            if not 0 <= begin <= end <= len(body) or end - begin != count * SIZES[t["dtype"]]:
                raise ValueError(f"tensor {name} lies outside the file")
            if name.startswith(("adam_m.", "adam_v.", "baseline.", "run.")):
                continue
            raw = bytearray(body[begin:end])
            tensor = torch.frombuffer(raw, dtype=kinds[t["dtype"]]) if count else torch.empty(0, dtype=kinds[t["dtype"]])
            tensors[name] = tensor.reshape(t["shape"])
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise HaulError(f"{path} is no safetensors file: {e}") from None
    return metadata, tensors
