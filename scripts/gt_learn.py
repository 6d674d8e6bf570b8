#!/usr/bin/env python3
"""Train PyTorch's expert model from nothing, and print what it has learned as it goes:

    scripts/gt_learn.py --customers 200 --capacity 80 --starts 100 --batch 64 --seconds 400 > torch.csv

The network is that of configs/cvrp100.yaml (scripts/gt_torch.py, six layers, pairs), the loss
REINFORCE with the mean of an instance's starts, by AdamW. A row has the instances learned from,
the mean cost of the validation instances that `haul train` draws with the same seed, the best of a
greedy route from every customer, and the seconds of the steps so far. go run ./scripts/_curve
--beside draws it beside a run of Haul's.
"""

import argparse
import time

VALIDATION = 3  # rng.ValidInstances
PART = 32  # instances validated at a time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--customers", type=int, default=200)
parser.add_argument("--capacity", type=int, default=80)
parser.add_argument("--starts", type=int, default=100)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--rate", type=float, default=3e-4)
parser.add_argument("--validate", type=int, default=128, help="instances to validate on")
parser.add_argument("--every", type=int, default=50, help="steps between validations")
parser.add_argument("--seconds", type=float, default=400)
parser.add_argument("--seed", type=int, default=42, help="of the validation instances, as haul train's")
parser.add_argument("--device", default="cuda")
args = parser.parse_args()

import gt_torch as gt  # noqa: E402, behind --help, which needs neither
import torch  # noqa: E402

torch.set_float32_matmul_precision("high")
torch.manual_seed(1)
policy = gt.GT(128, 6, 4, near=0.2, pairs=True).to(args.device)
optimizer = torch.optim.AdamW(policy.parameters(), lr=args.rate, weight_decay=1e-6, fused=args.device != "cpu")
xy, demand = gt.instances(args.seed, VALIDATION, 0, args.validate, dict(num_customers=args.customers, distribution="uniform", demand_range=[1, 9]))
valid = xy.to(args.device), (demand.float() / args.capacity).to(args.device)


def draw():
    """A batch of instances: places in the unit square, demands of 1 to 9."""
    nodes = args.customers + 1
    demand = torch.randint(1, 10, (args.batch, nodes), device=args.device).float() / args.capacity
    demand[:, 0] = 0
    return torch.rand(args.batch, nodes, 2, device=args.device), demand


@torch.no_grad()
def validate():
    costs = []
    for i in range(0, args.validate, PART):
        part = valid[0][i:i + PART], valid[1][i:i + PART]
        costs.append(gt.rollout(policy, policy.encode(*part), *part, args.customers, greedy=True, starts="forced").cost.min(1).values)
    return torch.cat(costs).mean().item()


print("# PyTorch, eager, the same network")
print("instances,cost,seconds")
print(f"0,{validate():.4f},0", flush=True)
begun, steps, spent = time.perf_counter(), 0, 0.0
while time.perf_counter() - begun < args.seconds:
    t = time.perf_counter()
    for group in optimizer.param_groups:
        group["lr"] = args.rate * min(1, (steps + 1) / 100)
    xy, demand = draw()
    enc = policy.encode(xy, demand)
    with torch.no_grad():
        routes = gt.rollout(policy, tuple(e.detach() for e in enc), xy, demand, args.starts, starts="forced")
    logp, _ = gt.score(policy, enc, routes, starts="forced")
    loss = ((routes.cost - routes.cost.mean(1, keepdim=True)) * logp).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    loss.item()  # waits for the step
    steps, spent = steps + 1, spent + time.perf_counter() - t
    if steps % args.every == 0:
        print(f"{steps * args.batch},{validate():.4f},{spent:.1f}", flush=True)
