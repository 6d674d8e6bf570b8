"""Writes the fixture that internal/model/muon_parity_test.go compares with: steps of PyTorch's own Muon.

  python scripts/muon_parity.py          # needs torch 2.9 or newer, numpy, safetensors

Haul cuts a matrix into square blocks; here every block is a parameter of its own. PyTorch rounds to bf16 before its rounds; it is
made to compute in float64 instead, so that the test sees the rule alone.
"""

import pathlib

import needs

needs.flags(__doc__).parse_args()
needs.packages("torch", "numpy", "safetensors")

import torch
import torch.optim._muon
from safetensors.torch import save_file

ROWS, COLUMNS, SIDE, STEPS, RATE, DECAY, CLIP = 36, 24, 12, 5, 0.015625, 0.125, 2.0
OUT = pathlib.Path(__file__).parent.parent / "internal/model/testdata/muon_parity.safetensors"


class Exact:
    """PyTorch, but for what its Muon takes for bf16."""

    bfloat16 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def main():
    torch.manual_seed(1)
    torch.optim._muon.torch = Exact()
    places = [(r, c) for r in range(0, ROWS, SIDE) for c in range(0, COLUMNS, SIDE)]
    cut = lambda m, at: m[at[0]:at[0] + SIDE, at[1]:at[1] + SIDE]
    weights = torch.randn(ROWS, COLUMNS)
    blocks = [torch.nn.Parameter(cut(weights, at).double().clone()) for at in places]
    optimizer = torch.optim.Muon(blocks, lr=RATE, weight_decay=DECAY, adjust_lr_fn="match_rms_adamw")
    gradients, after = [], []
    for step in range(STEPS):
        # The first gradients have few directions, as those of few instances.
        rank = min(SIDE, 2 + 4 * step)
        gradients.append((torch.randn(ROWS, rank) @ torch.randn(rank, COLUMNS)).float() / 4 ** step)
        clipped = gradients[-1].double()
        norm = clipped.norm()
        if norm > CLIP:
            clipped = clipped * (CLIP / (norm + 1e-6))
        for block, at in zip(blocks, places):
            block.grad = cut(clipped, at).clone()
        optimizer.step()
        whole = torch.zeros(ROWS, COLUMNS, dtype=torch.float64)
        for block, at in zip(blocks, places):
            cut(whole, at).copy_(block.detach())
        after.append(whole)
    out = {"weights": weights, "gradients": torch.stack(gradients), "after": torch.stack(after).float()}
    meta = {"rows": ROWS, "columns": COLUMNS, "side": SIDE, "steps": STEPS, "rate": RATE, "decay": DECAY, "clip": CLIP, "torch": torch.__version__.split("+")[0]}
    save_file({k: v.contiguous() for k, v in out.items()}, OUT, {k: str(v) for k, v in meta.items()})
    print(f"{OUT.name}: {OUT.stat().st_size // 1024} KiB; {STEPS} steps move weights by up to {(after[-1] - weights).abs().max():.3f}")


if __name__ == "__main__":
    needs.run(main)
