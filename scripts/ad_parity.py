"""Writes the fixtures that internal/model/ad_parity_test.go compares with: the same in-context agent in PyTorch, with learned positions, with rotary ones, and
with heads that share keys and values.

  python scripts/ad_parity.py            # needs torch, numpy, safetensors

Weights are float32 and tokens integers; PyTorch computes on them in float64, so that the test sees Haul's rounding alone: logits, losses,
every gradient by name, then the losses of ten AdamW steps with warm-up, cosine and clipping.
"""

import math
import pathlib

import needs

needs.flags(__doc__).parse_args()
needs.packages("torch", "numpy", "safetensors")

import torch
from safetensors.torch import save_file

import ad_torch as ad

WIDTH, HEADS, LAYERS, FEED, SIZE, ACTIONS, TOKENS, BATCH = 16, 2, 2, 24, 5, 4, 21, 5
SMOOTHING, RATE, BETA1, BETA2, EPS, DECAY, CLIP, WARMUP, TOTAL, FLOOR = 0.1, 3e-3, 0.9, 0.99, 1e-8, 0.01, 1.0, 3, 12, 0.1
STEPS = 10
OUT = pathlib.Path(__file__).parent.parent / "internal/model/testdata"


def rows():
    """Rows of several sequences, with markers among the transitions: positions restart, fields and labels are missing here and there."""
    first = torch.zeros(BATCH, TOKENS, dtype=torch.long)
    for b in range(1, BATCH):  # row 0 is one sequence
        for i in range(1, TOKENS):
            first[b, i] = i if torch.rand(()) < 0.15 else first[b, i - 1]
    position = torch.arange(TOKENS) - first
    kind = torch.randint(0, ad.TYPES, (BATCH, TOKENS))
    field = lambda n: torch.where(kind == 0, torch.randint(0, n, (BATCH, TOKENS)), -1)
    index = torch.stack([field(SIZE), field(SIZE), field(ACTIONS), field(2), kind, position], -1)
    labels = torch.stack([field(ACTIONS), field(ad.TYPES)], -1)
    return index, labels, first


def rate(t):
    """The schedule of kernel.AdamW, as a share of RATE; t counts from 1."""
    if t <= WARMUP:
        return t / WARMUP
    return FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * (min(t, TOTAL) - WARMUP) / (TOTAL - WARMUP))) / 2


def write(path, rotary, heads=HEADS, kv=None):
    torch.manual_seed(21)
    torch.set_default_dtype(torch.float64)
    model = ad.AD(WIDTH, heads, LAYERS, FEED, None if rotary else TOKENS, SIZE, ACTIONS, kv)
    with torch.no_grad():
        for p in model.parameters():  # away from the ones and zeros of norms, and to gradients on both sides of CLIP
            p.add_(0.3 * torch.randn_like(p))
            p.copy_(p.float())
    index, labels, first = rows()
    out = {"weights." + k: p.detach().float().clone() for k, p in ad.parameters(model).items()}
    out["index"], out["labels"], out["first"] = index.float(), labels.float(), first.float()

    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(BETA1, BETA2), eps=EPS, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = model(index, first)
        sums = model.losses(logits, labels, SMOOTHING)
        loss = sums.sum() / (BATCH * TOKENS)
        loss.backward()
        if step == 0:
            out["logits"], out["sums"] = logits.detach().float(), sums.detach().float()
            out.update({"grad." + k: p.grad.float().clone() for k, p in ad.parameters(model).items()})
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        optimizer.step()
        schedule.step()
    out["train.loss"], out["train.norm"] = torch.tensor(losses).float(), torch.tensor(norms).float()
    meta = {"width": WIDTH, "heads": heads, "layers": LAYERS, "feed": FEED, "size": SIZE, "actions": ACTIONS, "tokens": TOKENS, "batch": BATCH,
            "smoothing": SMOOTHING, "rate": RATE, "beta1": BETA1, "beta2": BETA2, "eps": EPS, "decay": DECAY, "clip": CLIP, "warmup": WARMUP,
            "total": TOTAL, "floor": FLOOR, "torch": torch.__version__.split("+")[0]}
    if kv:
        meta["kv"] = kv
    OUT.parent.mkdir(exist_ok=True)
    save_file({k: v.contiguous() for k, v in out.items()}, path, {k: str(v) for k, v in meta.items()})
    print(f"{path.name}: {len(out)} tensors, {path.stat().st_size // 1024} KiB; losses {losses[0]:.4f} to {losses[-1]:.4f}, gradient norms {min(norms):.2f} to {max(norms):.2f}")


def main():
    write(OUT / "ad_parity.safetensors", rotary=False)
    write(OUT / "ad_rotary_parity.safetensors", rotary=True)
    write(OUT / "ad_grouped_parity.safetensors", rotary=True, heads=4, kv=2)


if __name__ == "__main__":
    needs.run(main)
