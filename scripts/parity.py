"""Writes the fixture that internal/model/parity_test.go compares with: the same graph transformer in PyTorch.

  python scripts/parity.py            # needs torch, numpy, safetensors

Weights, instances, settings and actions are float32 and integers; PyTorch computes on them in float64, so that the test sees Haul's rounding
alone. Seven cases: one sampled route an instance, a forced start at every customer, the same with distances in the pointer's scores, and
of a second network, whose decoder scores pairs of nodes, a forced start at every customer without distances and with them, and a start that is viewed
from every customer, with both and with neither.
"""

import pathlib

import needs

needs.flags(__doc__).parse_args()
needs.packages("torch", "numpy", "safetensors")

import torch
from safetensors.torch import save_file

import gt_torch as gt

WIDTH, LAYERS, HEADS, CUSTOMERS, BATCH, CAPACITY = 32, 2, 4, 7, 6, 20
TEMPERATURE, ENTROPY, NEAR = (torch.tensor(v, dtype=torch.float32).item() for v in (1.3, 0.05, 0.35))
OUT = pathlib.Path(__file__).parent.parent / "internal/model/testdata/parity.safetensors"


def scattered(pairs):
    """A network away from the ones and zeros that norms and slopes start at."""
    policy = gt.GT(WIDTH, LAYERS, HEADS, pairs=pairs)
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.1 * torch.randn_like(p))
            p.copy_(p.float())
    return policy


def main():
    torch.manual_seed(20)
    torch.set_default_dtype(torch.float64)
    policy = scattered(False)
    xy = (torch.randint(0, 101, (BATCH, CUSTOMERS + 1, 2)).float() / 100).double()
    load = torch.randint(1, 10, (BATCH, CUSTOMERS + 1))
    load[:, 0] = 0
    demand = load.double() / CAPACITY

    out = {"weights." + k: v.detach().float() for k, v in gt.export(dict(policy.named_parameters()), LAYERS).items()}
    out["x"], out["y"] = xy[..., 0].float().contiguous(), xy[..., 1].float().contiguous()
    out["demand"] = load.float()
    cases = [("sampled", 1, None, 0.0), ("starts", CUSTOMERS, "forced", 0.0), ("near", CUSTOMERS, "forced", NEAR),
             ("pairs", CUSTOMERS, "forced", 0.0), ("pairs and near", CUSTOMERS, "forced", NEAR),
             ("views, pairs and near", CUSTOMERS, "viewed", NEAR), ("views", CUSTOMERS, "viewed", 0.0)]
    plain = policy
    for name, rows, starts, near in cases:
        if name == "views":
            policy = plain
        if name == "pairs":
            policy = scattered(True)
            out.update({"paired." + k: v.detach().float() for k, v in gt.export(dict(policy.named_parameters()), LAYERS).items()})
        policy.zero_grad()
        policy.near = near
        enc = policy.encode(xy, demand)
        with torch.no_grad():
            drawn = gt.rollout(policy, enc, xy, demand, rows, starts=starts, temperature=TEMPERATURE)
        actions = torch.zeros(BATCH, rows, 2 * CUSTOMERS, dtype=torch.long)
        steps = min(drawn.actions.shape[2], 2 * CUSTOMERS)
        actions[:, :, :steps] = drawn.actions[:, :, :steps]
        routes = gt.rollout(policy, enc, xy, demand, rows, starts=starts, actions=actions)
        logp, entropy = gt.score(policy, enc, routes, starts, TEMPERATURE)
        adv = (torch.randn(BATCH, rows) / (BATCH * rows)).float().double()
        ((adv * logp).sum() - ENTROPY * entropy.mean()).backward()
        out[name + ".actions"], out[name + ".advantage"] = actions.float(), adv.float()
        out[name + ".logprob"], out[name + ".entropy"], out[name + ".length"] = logp.detach().float(), entropy.detach().float(), routes.cost.float()
        grads = {k: p.grad for k, p in policy.named_parameters()}
        out.update({f"{name}.grad.{k}": v.float() for k, v in gt.export(grads, LAYERS).items()})
    meta = {"width": WIDTH, "layers": LAYERS, "heads": HEADS, "customers": CUSTOMERS, "batch": BATCH, "capacity": CAPACITY,
            "temperature": TEMPERATURE, "entropy": ENTROPY, "near": NEAR, "torch": torch.__version__.split("+")[0]}
    OUT.parent.mkdir(exist_ok=True)
    save_file({k: v.contiguous() for k, v in out.items()}, OUT, {k: str(v) for k, v in meta.items()})
    print(f"{OUT.name}: {len(out)} tensors, {OUT.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    needs.run(main)
