"""Loads a checkpoint into PyTorch, does there what `haul eval` does, and compares.

  python scripts/load_in_torch.py runs/quick-001 [--haul bin/haul] [--count 2000]                    # a routing policy
  python scripts/load_in_torch.py runs/agent-001 [--haul bin/haul] [-- --episodes 10 --agents 4]     # an in-context agent
                                                                                # needs torch, numpy, safetensors

A policy routes the test instances greedily. Agents live the episodes that `haul eval` reports, their contexts read whole at every step instead of
from caches; what follows -- goes to `haul eval`. Both sides draw the same numbers. A tie, or two choices within rounding of each other, may send a few
routes or lives another way.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open

import ad_live
import ad_torch as ad
import gt_torch as gt

TEST_INSTANCES = 4  # rng.TestInstances
SAME = 0.9  # of goals' mean returns by episode: a life that went another way shows in every later episode of its goal
TOLERANCE = 2e-4  # of the mean cost: one route in a hundred going another way, by a few percent


def as_json(haul, text):
    """Settings are YAML; haul itself turns them into JSON."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        return json.loads(subprocess.run([haul, "config", "show", "--config", f.name, "--json"], check=True, capture_output=True, text=True).stdout)


def route(haul, path, tensors, settings, count):
    """The mean cost of greedy routes, here and there."""
    m, problem, seed = settings["model"], settings["problem"], settings["experiment"]["random_seed"]
    policy = gt.GT(m["hidden_dim"], m["num_layers"], m["num_heads"], m["feedforward_multiplier"])
    gt.load(policy, tensors)
    xy, load = gt.instances(seed, TEST_INSTANCES, 0, count, problem)
    demand = load.float() / problem["vehicle_capacity"]
    with torch.no_grad():
        cost = gt.rollout(policy, policy.encode(xy, demand), xy, demand, 1, greedy=True).cost.mean().item()
    out = subprocess.run([haul, "eval", "--checkpoint", str(path), "--count", str(count), "--json"], check=True, capture_output=True, text=True)
    ours = json.loads(out.stdout)["mean_cost"]
    print(f"mean greedy cost of {count} instances: PyTorch {cost:.6f}, Haul {ours:.6f}, apart by {abs(cost / ours - 1):.1e}")
    return abs(cost / ours - 1) <= TOLERANCE


def live(haul, path, tensors, settings, more):
    """The returns of agents in context, here and there."""
    out = subprocess.run([haul, "eval", "--model", "AD", "--checkpoint", str(path), "--json", *more], check=True, capture_output=True, text=True)
    report = json.loads(out.stdout)
    agent = ad.of(tensors, int(settings["tf_n_head"]))
    returns = ad_live.returns(agent, report, settings)  # [goals, agents, episodes]
    theirs = torch.tensor([g["return"] for g in report["goals"]])
    same = (returns.mean(1) - theirs).abs() < 1e-6
    apart = (returns.mean((0, 1)) - theirs.mean(0)).abs().max().item()
    print(f"{returns[..., 0].numel()} agents, {returns.shape[2]} episodes: mean return PyTorch {returns.mean():.4f}, Haul {theirs.mean():.4f}; "
          f"{same.float().mean():.1%} of the goals' episodes equal, the curves apart by at most {apart:.2f}")
    return same.float().mean() >= SAME and abs(returns.mean() - theirs.mean()) <= 0.01 * report["optimal"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("checkpoint", type=pathlib.Path)
    ap.add_argument("--haul", default="haul")
    ap.add_argument("--count", type=int, default=2000)
    ap.add_argument("more", nargs="*")
    a = ap.parse_args()
    path = a.checkpoint / "best.safetensors" if a.checkpoint.is_dir() else a.checkpoint
    with safe_open(path, "pt") as f:
        meta = f.metadata()
        tensors = {k: f.get_tensor(k) for k in f.keys()}
    if meta["haul.model"] == "AD":
        settings = dict(line.split(": ", 1) for line in meta["haul.config"].splitlines() if ": " in line)
        agree = live(a.haul, path, tensors, settings, a.more)
    else:
        agree = route(a.haul, path, tensors, as_json(a.haul, meta["haul.config"]), a.count)
    if not agree:
        sys.exit("the two disagree")


if __name__ == "__main__":
    main()
