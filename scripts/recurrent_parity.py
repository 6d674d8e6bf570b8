"""Writes the fixture that internal/model/recurrent_parity_test.go compares with: an actor-critic over PyTorch's own nn.GRU.

  python scripts/recurrent_parity.py          # needs torch, numpy, safetensors

Inputs and weights are float32; everything is computed in float64. The loss is PPO's, clipped, over rows of steps.
"""

import pathlib

import needs

needs.flags(__doc__).parse_args()
needs.packages("torch", "numpy", "safetensors")

import torch
from safetensors.torch import save_file

BATCH, STEPS, INPUTS, ROWS, EMBED, HIDDEN, ACTIONS = 3, 6, 4, 9, 3, 5, 4
CLIP, VALUE, ENTROPY = 0.2, 0.5, 0.03125
OUT = pathlib.Path(__file__).parent.parent / "internal/model/testdata/recurrent_parity.safetensors"


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(ROWS, EMBED)
        self.input = torch.nn.Linear(INPUTS * EMBED, HIDDEN)
        self.gru = torch.nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.out = torch.nn.Linear(HIDDEN, ACTIONS + 1)

    def forward(self, index, units):
        x = self.embed(index).flatten(2)
        x = torch.nn.functional.gelu(self.input(x), approximate="tanh")
        x, last = self.gru(x, units[None])
        return self.out(x), last[0]


def main():
    torch.manual_seed(3)
    net = Recurrent()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(p + 0.3 * torch.randn(p.shape))
    names = {k: k.replace("_l0", "") for k, _ in net.named_parameters()}
    out = {"weights." + names[k]: p.detach().float().clone() for k, p in net.named_parameters()}
    index = torch.randint(ROWS, (BATCH, STEPS, INPUTS))
    units = torch.randn(BATCH, HIDDEN)
    action = torch.randint(ACTIONS, (BATCH, STEPS))
    then = -0.5 - 2 * torch.rand(BATCH, STEPS)
    advantage, target = torch.randn(BATCH, STEPS), torch.randn(BATCH, STEPS)
    net.double()
    y, last = net(index, units.double())
    logp = y[..., :ACTIONS].log_softmax(-1)
    ratio = (logp.gather(-1, action[..., None])[..., 0] - then.double()).exp()
    gained = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(logp.exp() * logp).sum(-1)
    loss = (-gained + VALUE * (y[..., ACTIONS] - target) ** 2 - ENTROPY * entropy).mean()
    loss.backward()
    out |= {"grad." + names[k]: p.grad.float() for k, p in net.named_parameters()}
    out |= {"index": index.float(), "units": units, "out": y.detach().float(), "last": last.detach().float(),
            "sample": torch.stack([action.float(), then, advantage, target], -1)}
    sizes = {"batch": BATCH, "steps": STEPS, "inputs": INPUTS, "rows": ROWS, "embed": EMBED, "hidden": HIDDEN, "actions": ACTIONS}
    meta = sizes | {"clip": CLIP, "value": VALUE, "entropy": ENTROPY, "loss": loss.item(), "torch": torch.__version__.split("+")[0]}
    save_file({k: v.contiguous() for k, v in out.items()}, OUT, {k: str(v) for k, v in meta.items()})
    left = ((ratio < 1 - CLIP) | (ratio > 1 + CLIP)).sum().item()
    print(f"{OUT.name}: {OUT.stat().st_size / 1024:.1f} KiB; loss {loss.item():.6f}, {left} of {BATCH * STEPS} ratios left the clip")


if __name__ == "__main__":
    needs.run(main)
