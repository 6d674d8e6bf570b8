"""Loads a trained policy into PyTorch, routes the test instances greedily there, and compares with `haul eval`.

  python scripts/load_in_torch.py runs/quick-001 [--haul bin/haul] [--count 2000]     # needs torch, numpy, safetensors

Both sides draw the same instances. A tie, or two nodes within rounding of each other, may send a few routes another way.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open

import gt_torch as gt

TEST_INSTANCES = 4  # rng.TestInstances
TOLERANCE = 2e-4  # of the mean cost: one route in a hundred going another way, by a few percent


def as_json(haul, text):
    """Settings are YAML; haul itself turns them into JSON."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        return json.loads(subprocess.run([haul, "config", "show", "--config", f.name, "--json"], check=True, capture_output=True, text=True).stdout)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("checkpoint", type=pathlib.Path)
    ap.add_argument("--haul", default="haul")
    ap.add_argument("--count", type=int, default=2000)
    a = ap.parse_args()
    path = a.checkpoint / "best.safetensors" if a.checkpoint.is_dir() else a.checkpoint
    with safe_open(path, "pt") as f:
        settings = as_json(a.haul, f.metadata()["haul.config"])
        tensors = {k: f.get_tensor(k) for k in f.keys()}
    m, problem, seed = settings["model"], settings["problem"], settings["experiment"]["random_seed"]
    policy = gt.GT(m["hidden_dim"], m["num_layers"], m["num_heads"], m["feedforward_multiplier"])
    gt.load(policy, tensors)
    xy, load = gt.instances(seed, TEST_INSTANCES, 0, a.count, problem)
    demand = load.float() / problem["vehicle_capacity"]
    with torch.no_grad():
        cost = gt.rollout(policy, policy.encode(xy, demand), xy, demand, 1, greedy=True).cost.mean().item()
    out = subprocess.run([a.haul, "eval", "--checkpoint", str(path), "--count", str(a.count), "--json"], check=True, capture_output=True, text=True)
    ours = json.loads(out.stdout)["mean_cost"]
    print(f"mean greedy cost of {a.count} instances: PyTorch {cost:.6f}, Haul {ours:.6f}, apart by {abs(cost / ours - 1):.1e}")
    if not abs(cost / ours - 1) <= TOLERANCE:
        sys.exit("the two disagree")


if __name__ == "__main__":
    main()
