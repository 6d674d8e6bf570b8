"""The in-context agent of internal/model/ad.go in plain PyTorch, under Haul's own parameter names.

What a reader could break: the names. `parameters` lists the module's parameters as a checkpoint names them; `of` reads one.

A token is the sum of its fields' embeddings, an index of -1 adding nothing; layers are pre-norm, GELU in its tanh form; token i looks at
those from `first[i]`, where its sequence begins, to itself. Positions are a table, or rotary: then queries and keys turn with them. Heads of
queries may share those of keys and values.
"""

if __name__ == "__main__":  # a module: there is nothing to run
    raise SystemExit(__doc__.strip())

import torch
import torch.nn as nn
import torch.nn.functional as F

FIELDS = ("x", "y", "action", "reward", "kind", "position")  # "type" in Haul: here the name is taken
TYPES = 3  # transition, <compress>, </compress>


def turned(x, position):
    """Rotary positions (Su et al. 2021) of x [B,H,T,W]: columns j and j + W/2 are a point that goes round; no position, -1, turns nothing."""
    half = x.shape[-1] // 2
    angle = position.clamp(min=0)[:, None, :, None] * 10000.0 ** (-torch.arange(half, device=x.device) / half)
    a, b = x.split(half, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


class Layer(nn.Module):
    def __init__(self, d, heads, feed, kv=None):
        super().__init__()
        self.heads, self.kv = heads, kv or heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, d + 2 * self.kv * (d // heads), bias=False)
        self.out = nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, feed), nn.Linear(feed, d)

    def forward(self, x, mask, position=None):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, self.heads + 2 * self.kv, -1).transpose(1, 2).split((self.heads, self.kv, self.kv), 1)
        if position is not None:
            q, k = turned(q, position), turned(k, position)
        k, v = (z.repeat_interleave(self.heads // self.kv, 1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class AD(nn.Module):
    def __init__(self, d, heads, layers, feed, positions, size, actions, kv=None):
        """positions is the length of their table; None: they are rotary. kv is the number of heads of keys and values; None: as many as of queries."""
        super().__init__()
        rows = (size, size, actions, 2, TYPES) + ((positions,) if positions else ())
        self.actions, self.rotary = actions, positions is None
        self.embed = nn.ModuleDict({name: nn.Embedding(n, d) for name, n in zip(FIELDS, rows)})
        self.layers = nn.ModuleList(Layer(d, heads, feed, kv) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, actions + TYPES)

    def forward(self, index, first):
        """index [B,T,6], first [B,T]; logits [B,T,actions+3]."""
        at = torch.arange(index.shape[1], device=index.device)
        mask = (at <= at[:, None]) & (at >= first[..., None])
        x = sum(self.embed[name](index[..., f].clamp(min=0)) * (index[..., f, None] >= 0) for f, name in enumerate(FIELDS) if name in self.embed)
        for layer in self.layers:
            x = layer(x, mask[:, None], index[..., -1] if self.rotary else None)
        return self.head(self.norm(x))

    def losses(self, logits, labels, smoothing=0.0):
        """Each head's loss summed over the tokens of each row that have a label, [B,2]."""
        b, t, _ = logits.shape
        out = []
        for g, z in enumerate(logits.split([self.actions, TYPES], -1)):
            each = F.cross_entropy(z.reshape(b * t, -1), labels[..., g].reshape(-1).long(), ignore_index=-1, label_smoothing=smoothing, reduction="none")
            out.append(each.view(b, t).sum(1))
        return torch.stack(out, 1)


def parameters(model):
    """Haul's name -> parameter."""
    return {k.replace("embed.kind.", "embed.type."): p for k, p in model.named_parameters()}


def of(tensors, heads):
    """The model whose shape the tensors have, with their values."""
    d = tensors["norm.weight"].shape[0]
    layers = sum(name.startswith("layers.") and name.endswith(".norm1.weight") for name in tensors)  # a checkpoint has the moments too
    m = AD(d, heads, layers, tensors["layers.0.up.weight"].shape[0], tensors["embed.position.weight"].shape[0] if "embed.position.weight" in tensors else None,
           tensors["embed.x.weight"].shape[0], tensors["embed.action.weight"].shape[0], (tensors["layers.0.qkv.weight"].shape[0] - d) // 2 // (d // heads))
    own = parameters(m)
    assert set(own) <= set(tensors), f"no value for {sorted(set(own) - set(tensors))}"
    with torch.no_grad():
        for name, p in own.items():
            p.copy_(tensors[name])
    return m
