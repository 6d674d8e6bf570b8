"""The graph attention encoder of internal/model/gat.go in plain PyTorch, under the decoder of gt_torch.py.

What a reader could break: the names. PARTS maps Haul's parameter names of a layer to this module's.
"""

if __name__ == "__main__":  # a module: there is nothing to run
    raise SystemExit(__doc__.strip())

import torch.nn as nn
import torch.nn.functional as F

import gt_torch as gt

PARTS = [("value.weight", "v.weight"), ("far.weight", "f.weight")] + [
    (f"{ours}.{part}", f"{here}.{part}")
    for ours, here in [("norm", "n"), ("score", "s"), ("edge", "e"), ("gate", "g"), ("out", "w")] for part in ("weight", "bias")]


class Layer(nn.Module):
    def __init__(self, d, heads, edge, mul, leak):
        super().__init__()
        self.heads, self.leak = heads, leak
        self.n = nn.LayerNorm(d)
        self.v = nn.Linear(d, d, bias=False)
        self.s = nn.Linear(d, 2 * heads)
        self.e = nn.Linear(d, edge)
        self.f = nn.Linear(edge, heads, bias=False)
        self.g = nn.Linear(d, 2 * mul * d)
        self.w = nn.Linear(mul * d, d)

    def forward(self, x, dist):
        b, n, d = x.shape
        h = self.n(x)
        v = self.v(h)
        source, target = self.s(v).view(b, n, 2, self.heads).permute(2, 0, 3, 1)  # [B,H,N] each
        far = self.f(self.e(h)).transpose(1, 2)
        z = source[..., :, None] + target[..., None, :] - far[..., :, None] * dist.unsqueeze(1)
        p = F.leaky_relu(z, self.leak).softmax(-1)
        y = p @ v.view(b, n, self.heads, -1).transpose(1, 2)
        return x + self.w(F.glu(self.g(y.transpose(1, 2).reshape(b, n, d)), -1))


class GAT(gt.GT):
    def __init__(self, d, layers, heads, edge, leak, mul=2, near=0.0, pairs=False, views=False):
        super().__init__(d, 0, heads, mul, near, pairs, views)
        self.layers, self.parts = nn.ModuleList(Layer(d, heads, edge, mul, leak) for _ in range(layers)), PARTS
