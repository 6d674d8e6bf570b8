"""Writes the fixture that internal/model/parity_test.go compares with: the same graph transformer in PyTorch.

  python scripts/parity.py            # needs torch, numpy, safetensors

Weights, instances and actions are float32 and integers; PyTorch computes on them in float64, so that the test sees Haul's rounding
alone. Three cases: one sampled route an instance, a forced start at every customer, and the same with distances in the pointer's scores.
"""

import pathlib

import needs

needs.flags(__doc__).parse_args()
needs.packages("torch", "numpy", "safetensors")

import torch
from safetensors.torch import save_file

import gt_torch as gt

WIDTH, LAYERS, HEADS, CUSTOMERS, BATCH, CAPACITY = 32, 2, 4, 7, 6, 20
TEMPERATURE, ENTROPY, NEAR = 1.3, 0.05, 0.35
OUT = pathlib.Path(__file__).parent.parent / "internal/model/testdata/parity.safetensors"


def main():
    torch.manual_seed(20)
    torch.set_default_dtype(torch.float64)
    policy = gt.GT(WIDTH, LAYERS, HEADS)
    with torch.no_grad():
        for p in policy.parameters():  # away from the ones and zeros that norms and slopes start at
            p.add_(0.1 * torch.randn_like(p))
            p.copy_(p.float())
    xy = (torch.randint(0, 101, (BATCH, CUSTOMERS + 1, 2)).float() / 100).double()
    load = torch.randint(1, 10, (BATCH, CUSTOMERS + 1))
    load[:, 0] = 0
    demand = load.double() / CAPACITY

    out = {"weights." + k: v.detach().float() for k, v in gt.export(dict(policy.named_parameters()), LAYERS).items()}
    out["x"], out["y"] = xy[..., 0].float().contiguous(), xy[..., 1].float().contiguous()
    out["demand"] = load.float()
    for name, rows, forced, near in [("sampled", 1, False, 0.0), ("starts", CUSTOMERS, True, 0.0), ("near", CUSTOMERS, True, NEAR)]:
        policy.zero_grad()
        policy.near = near
        enc = policy.encode(xy, demand)
        with torch.no_grad():
            drawn = gt.rollout(policy, enc, xy, demand, rows, forced=forced, temperature=TEMPERATURE)
        actions = torch.zeros(BATCH, rows, 2 * CUSTOMERS, dtype=torch.long)
        steps = min(drawn.actions.shape[2], 2 * CUSTOMERS)
        actions[:, :, :steps] = drawn.actions[:, :, :steps]
        routes = gt.rollout(policy, enc, xy, demand, rows, actions=actions)
        logp, entropy = gt.score(policy, enc, routes, forced, TEMPERATURE)
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
