"""Writes the fixtures that internal/model/parity_test.go compares with: the same networks in PyTorch.

  python scripts/parity.py            # needs torch, numpy, safetensors

Weights, instances, settings and actions are float32 and integers; PyTorch computes on them in float64, so that the test sees Haul's rounding
alone. Seven cases: one sampled route an instance, a forced start at every customer, the same with distances in the pointer's scores, and
of a second network, whose decoder scores pairs of nodes, a forced start at every customer without distances and with them, and a start that is viewed
from every customer, with both and with neither. A third network, whose encoder is a graph attention network, has a fixture of its own with the first case
and the one with pairs and distances. A fourth network knows limits of a route's length (the rule set CVRPL) and has a fixture with two cases.
"""

import pathlib

import needs

needs.flags(__doc__).parse_args()
needs.packages("torch", "numpy", "safetensors")

import torch
from safetensors.torch import save_file

import gat_torch as gat
import gt_torch as gt

WIDTH, LAYERS, HEADS, CUSTOMERS, BATCH, CAPACITY = 32, 2, 4, 7, 6, 20
TEMPERATURE, ENTROPY, NEAR = (torch.tensor(v, dtype=torch.float32).item() for v in (1.3, 0.05, 0.35))
EDGE, LEAK = 5, torch.tensor(0.2, dtype=torch.float32).item()
FOLDER = pathlib.Path(__file__).parent.parent / "internal/model/testdata"


def scattered(policy):
    """The network away from the ones and zeros that norms and slopes start at."""
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.1 * torch.randn_like(p))
            p.copy_(p.float())
    return policy


def problems():
    xy = (torch.randint(0, 101, (BATCH, CUSTOMERS + 1, 2)).float() / 100).double()
    load = torch.randint(1, 10, (BATCH, CUSTOMERS + 1))
    load[:, 0] = 0
    return xy, load


def under(prefix, tensors, policy):
    return {prefix + k: v.detach().float() for k, v in gt.export(tensors, LAYERS, policy.parts).items()}


def case(out, name, policy, xy, demand, rows, starts, near, limit=None):
    """Adds what the network makes of drawn routes, and every gradient."""
    policy.zero_grad()
    policy.near = near
    enc = policy.encode(xy, demand)
    with torch.no_grad():
        drawn = gt.rollout(policy, enc, xy, demand, rows, starts=starts, temperature=TEMPERATURE, limit=limit)
    actions = torch.zeros(BATCH, rows, 2 * CUSTOMERS, dtype=torch.long)
    steps = min(drawn.actions.shape[2], 2 * CUSTOMERS)
    actions[:, :, :steps] = drawn.actions[:, :, :steps]
    routes = gt.rollout(policy, enc, xy, demand, rows, starts=starts, actions=actions, limit=limit)
    logp, entropy = gt.score(policy, enc, routes, starts, TEMPERATURE)
    adv = (torch.randn(BATCH, rows) / (BATCH * rows)).float().double()
    ((adv * logp).sum() - ENTROPY * entropy.mean()).backward()
    out[name + ".actions"], out[name + ".advantage"] = actions.float(), adv.float()
    out[name + ".logprob"], out[name + ".entropy"], out[name + ".length"] = logp.detach().float(), entropy.detach().float(), routes.cost.float()
    out.update(under(name + ".grad.", {k: p.grad for k, p in policy.named_parameters()}, policy))


def write(name, out, **more):
    meta = {"width": WIDTH, "layers": LAYERS, "heads": HEADS, "customers": CUSTOMERS, "batch": BATCH, "capacity": CAPACITY,
            "temperature": TEMPERATURE, "entropy": ENTROPY, "near": NEAR, "torch": torch.__version__.split("+")[0], **more}
    FOLDER.mkdir(exist_ok=True)
    save_file({k: v.contiguous() for k, v in out.items()}, FOLDER / name, {k: str(v) for k, v in meta.items()})
    print(f"{name}: {len(out)} tensors, {(FOLDER / name).stat().st_size // 1024} KiB")


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(20)
    policy = scattered(gt.GT(WIDTH, LAYERS, HEADS))
    xy, load = problems()
    demand = load.double() / CAPACITY
    given = {"x": xy[..., 0].float().contiguous(), "y": xy[..., 1].float().contiguous(), "demand": load.float()}
    out = {**under("weights.", dict(policy.named_parameters()), policy), **given}
    plain = policy
    for name, rows, starts, near in [
            ("sampled", 1, None, 0.0), ("starts", CUSTOMERS, "forced", 0.0), ("near", CUSTOMERS, "forced", NEAR),
            ("pairs", CUSTOMERS, "forced", 0.0), ("pairs and near", CUSTOMERS, "forced", NEAR),
            ("views, pairs and near", CUSTOMERS, "viewed", NEAR), ("views", CUSTOMERS, "viewed", 0.0)]:
        if name == "views":
            policy = plain
        if name == "pairs":
            policy = scattered(gt.GT(WIDTH, LAYERS, HEADS, pairs=True))
            out.update(under("paired.", dict(policy.named_parameters()), policy))
        case(out, name, policy, xy, demand, rows, starts, near)
    write("parity.safetensors", out)

    torch.manual_seed(21)
    out = dict(given)
    for name, pairs, rows, starts, near in [("sampled", False, 1, None, 0.0), ("pairs and near", True, CUSTOMERS, "forced", NEAR)]:
        policy = scattered(gat.GAT(WIDTH, LAYERS, HEADS, EDGE, LEAK, pairs=pairs))
        out.update(under("paired." if pairs else "weights.", dict(policy.named_parameters()), policy))
        case(out, name, policy, xy, demand, rows, starts, near)
    write("gat_parity.safetensors", out, edge=EDGE, leak=LEAK)

    torch.manual_seed(22)
    limit = 2 * gt.legs(xy)[:, 0].max(1).values * (1 + torch.rand(BATCH).float())
    out = {**given, "limit": limit}
    for name, pairs, rows, starts, near in [("sampled", False, 1, None, 0.0), ("pairs and near", True, CUSTOMERS, "forced", NEAR)]:
        policy = scattered(gt.GT(WIDTH, LAYERS, HEADS, pairs=pairs, limits=True))
        out.update(under("paired." if pairs else "weights.", dict(policy.named_parameters()), policy))
        case(out, name, policy, xy, demand, rows, starts, near, limit)
    write("limits_parity.safetensors", out, limits=1)


if __name__ == "__main__":
    needs.run(main)
