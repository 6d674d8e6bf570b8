"""Loads a checkpoint into PyTorch, does there what `haul eval` does, and compares.

  python scripts/load_in_torch.py runs/quick-001 --haul bin/haul      # a routing policy
  python scripts/load_in_torch.py cvrp100.safetensors --decode pomo   # haul policies cvrp100 --out
  python scripts/load_in_torch.py runs/agent-001 -- --episodes 10 --agents 4    # an agent

It needs torch and numpy.

A policy routes the first instances of Kool's test set of its size, greedily or from every customer as the first (--decode pomo), in fp32 on
both sides; tours are compared node by node. An instance is put before the policy as Haul puts it: in the unit square, and where its demands are far
larger shares of the capacity than in training, with smaller ones as well, the better of the two routes counting. Agents live the episodes that
`haul eval` reports, their contexts read whole at every step instead of from caches;
what follows -- goes to `haul eval`. Both sides draw the same numbers. A tie, or two choices within rounding of each other, may send a few
routes or lives another way.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import needs

ap = needs.flags(__doc__)
ap.add_argument("checkpoint", type=pathlib.Path, help="a run's folder or a .safetensors file")
ap.add_argument("--haul", default="haul", help="the program")
ap.add_argument("--count", type=int, default=2000, help="instances of a routing policy")
ap.add_argument("--decode", choices=["greedy", "pomo"], default="greedy")
ap.add_argument("--device", default="cpu", help="where PyTorch computes")
ap.epilog = "For an agent, what follows -- goes to haul eval."
ours = sys.argv[1:]
cut = ours.index("--") if "--" in ours else len(ours)  # argparse takes -- only where no flag stands between it and the checkpoint
FLAGS = ap.parse_args(ours[:cut])
FLAGS.more = ours[cut + 1:]
needs.packages("torch", "numpy")

import numpy as np
import torch

import ad_live
import ad_torch as ad
import gt_torch as gt

SAME = 0.9  # of goals' mean returns by episode: a life that went another way shows in every later episode of its goal
TOLERANCE = 2e-4  # of the mean cost: one route in a hundred going another way, by a few percent
SAME_TOURS = 0.9  # of the instances
PLAIN = {"num_customers", "vehicle_capacity", "capacity_range", "demand_range", "coord_range", "distribution"}  # of the settings' problem; any other key is a rule
TYPES = {"F32": torch.float32, "F64": torch.float64, "I32": torch.int32, "BF16": torch.bfloat16}


def read(path):
    """A safetensors file: its metadata, and its tensors, bf16 widened to fp32."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    meta = header.pop("__metadata__", {})
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        v = torch.frombuffer(bytearray(data[8 + size + begin : 8 + size + end]), dtype=TYPES[t["dtype"]]).reshape(t["shape"])
        tensors[name] = v.float() if v.dtype == torch.bfloat16 else v
    return meta, tensors


def as_json(haul, text):
    """Settings are YAML; haul itself turns them into JSON."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        return json.loads(subprocess.run([haul, "config", "show", "--config", f.name, "--json"], check=True, capture_output=True, text=True).stdout)


def tour_of(text):
    """The routes of a .sol file as one list of visits, in the file's order."""
    out = []
    for line in text.splitlines():
        if line.startswith("Route"):
            out += [int(v) for v in line.split(":")[1].split()] + [0]
    return out


def frame(places):
    """The corner and the side of the square that becomes the unit square, by instance: the unit square itself where the nodes fill half of it."""
    low, high = places.amin(1, keepdim=True), places.amax(1, keepdim=True)
    side = (high - low).amax(2, keepdim=True)
    unit = ((low >= 0) & (high <= 1)).all(2, keepdim=True) & (side >= 0.5)
    return torch.where(unit, 0.0, low), torch.where(unit | (side == 0), 1.0, side)


def shown(load, capacity, problem):
    """What demands are divided by for the policy to see, by instance: the capacity, unless they are larger shares of it than any in training and
    their mean is more than 1.3 times that of training."""
    trained = problem["capacity_range"][0] or problem["vehicle_capacity"]
    least, most = problem["demand_range"]
    mean = load[:, 1:].double().mean(1)
    smaller = torch.clamp(mean / (1.3 * ((least + most) / 2 / trained)), min=capacity)
    usual = load.amax(1).double() <= most / trained * capacity
    return torch.where(usual, capacity, smaller)[:, None]


def gt_routes(policy, xy, demand, seen, n, decode):
    """The best route of each instance, as its cost and its visits."""
    out = []
    with torch.no_grad():
        for at in range(0, len(xy), 50):  # a few at a time: all steps of all starts are kept
            part = slice(at, at + 50)
            r = gt.rollout(policy, policy.encode(xy[part], seen[part]), xy[part], demand[part], n if decode == "pomo" else 1, greedy=True,
                           starts="forced" if decode == "pomo" else None)
            out += [(r.cost[i, s].item(), r.actions[i, s].tolist()) for i, s in enumerate(r.cost.argmin(1).tolist())]
    return out


def route(haul, path, tensors, settings, count, decode, device):
    """Tours here and there, on Kool's test set of the policy's size."""
    problem = settings["problem"]
    rules = {k: v for k, v in problem.items() if k not in PLAIN and v}
    if rules:
        sys.exit(f"{path}: trained on more than capacities ({rules}); Kool's test sets have nothing else, and PyTorch is given no limit: compare it by scripts/parity.py")
    policy = gt.of(tensors, settings).to(device)
    n = min((10, 20, 50, 100), key=lambda k: abs(k - problem["num_customers"]))
    with tempfile.TemporaryDirectory() as folder:
        given = [haul, "gen", f"kool:{n}", "--count", str(count), "--out", f"{folder}/set.npz"]
        subprocess.run(given, check=True, capture_output=True)
        z = np.load(f"{folder}/set.npz")
        places = torch.from_numpy(np.concatenate([z["depot"][:, None], z["locs"]], 1))
        load = torch.from_numpy(np.concatenate([np.zeros((count, 1), np.int64), z["demand"]], 1))
        capacity = float(z["capacity"][0])
        out = subprocess.run([haul, "eval", f"{folder}/set.npz", "--checkpoint", str(path), "--decode", decode, "--device", "cpu",
                              "--out", f"{folder}/routes", "--json"], check=True, capture_output=True, text=True)
        ours = json.loads(out.stdout)["mean_cost"]
        theirs = [tour_of(pathlib.Path(f"{folder}/routes/instance-{i}.sol").read_text()) for i in range(count)]
    corner, side = frame(places)
    xy = ((places - corner) / side).float().to(device)
    demand = (load.float() / capacity).to(device)
    divisor = shown(load, capacity, problem)
    seen = (load.float() / divisor.float()).to(device)  # what the policy reads; what fits a vehicle is decided by demand
    routes = gt_routes(policy, xy, demand, demand, n, decode)
    other = gt_routes(policy, xy, demand, seen, n, decode) if (divisor != capacity).any() else routes
    same, costs = 0, []
    for i, want in enumerate(theirs):
        cost, tour = min(routes[i], other[i], key=lambda r: r[0])  # of equals the first
        costs.append(cost * side[i].item())
        same += tour[: len(want)] == want and not any(tour[len(want) :])
    cost = sum(costs) / count
    print(f"{decode}, {count} instances of {n} customers: mean cost PyTorch {cost:.6f}, Haul {ours:.6f}, apart by {abs(cost / ours - 1):.1e}; {same} of {count} tours equal")
    return abs(cost / ours - 1) <= TOLERANCE and same >= SAME_TOURS * count


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
    a = FLAGS
    a.haul = needs.program(a.haul)
    path = a.checkpoint / "best.safetensors" if a.checkpoint.is_dir() else a.checkpoint
    meta, tensors = read(path)
    if meta["haul.model"] == "AD":
        settings = dict(line.split(": ", 1) for line in meta["haul.config"].splitlines() if ": " in line)
        agree = live(a.haul, path, tensors, settings, a.more)
    else:
        torch.backends.cuda.matmul.allow_tf32 = False
        agree = route(a.haul, path, tensors, as_json(a.haul, meta["haul.config"]), a.count, a.decode, a.device)
    if not agree:
        sys.exit("the two disagree")


if __name__ == "__main__":
    needs.run(main)
