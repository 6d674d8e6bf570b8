"""The graph transformer of internal/model/gt.go in plain PyTorch, and what it takes to compare the two.

What a reader could break: the names. `load` maps Haul's parameter names to this module's, the one table that
docs/parameters.md explains; both scripts/parity.py and scripts/load_in_torch.py go through it.

Encode once, sample with detached encodings, then score all steps of all routes in one teacher-forced pass.
"""

if __name__ == "__main__":  # a module: there is nothing to run
    raise SystemExit(__doc__.strip())

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CLIP = 10  # bound of the pointer's logits
NEAR_FLOOR = 1e-4  # added to a squared distance before its logarithm
FORBIDDEN = -1e9


class Layer(nn.Module):
    def __init__(self, d, heads, mul):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.slope = nn.Parameter(torch.zeros(heads))
        self.o = nn.Linear(d, d)
        self.g = nn.Linear(d, 2 * mul * d)
        self.w = nn.Linear(mul * d, d)

    def forward(self, x, dist):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = -self.slope.view(1, -1, 1, 1) * dist.unsqueeze(1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        x = x + self.o(y.transpose(1, 2).reshape(b, n, d))
        return x + self.w(F.glu(self.g(self.n2(x)), -1))


class GT(nn.Module):
    """A policy: embedding, encoder layers, pointer decoder. gat_torch.py has other layers."""

    def __init__(self, d, layers, heads, mul=2, near=0.0, pairs=False, views=False, limits=False):
        super().__init__()
        self.d, self.heads, self.near, self.pairs, self.views, self.limits = d, heads, near, pairs, views, limits
        self.emb = nn.Linear(4, d)
        self.layers, self.parts = nn.ModuleList(Layer(d, heads, mul) for _ in range(layers)), PARTS
        self.nf = nn.LayerNorm(d)
        self.pq, self.pk, self.pv, self.pl, self.pg, self.po = (nn.Linear(d, d, bias=False) for _ in range(6))
        contexts = 2 if limits else 1  # kernel.RuleSet.Context: the load left, and of CVRPL the length left
        self.pc = nn.Linear(contexts, d, bias=False)
        if pairs:
            self.pr, self.ps = (nn.Linear(d, d, bias=False) for _ in range(2))
            self.pw = nn.Linear(contexts, d, bias=False)

    def encode(self, xy, demand):
        """demand is a share of the capacity; node 0 is the depot."""
        depot = torch.zeros_like(demand)
        depot[:, 0] = 1
        x = self.emb(torch.cat([xy, demand[..., None], depot[..., None]], -1))
        # Past 25 nodes cdist would multiply matrices, and near nodes' distances be off by up to 3e-4.
        dist = torch.cdist(xy, xy, compute_mode="donot_use_mm_for_euclid_dist")
        for layer in self.layers:
            x = layer(x, dist)
        h = self.nf(x)
        b, n, _ = h.shape
        split = lambda t: t.view(b, n, self.heads, -1).transpose(1, 2)
        query = self.pq(h) + self.pg(h.mean(1, keepdim=True))
        enc = query, split(self.pk(h)), split(self.pv(h)), self.pl(h) @ self.po.weight
        pull = []  # what the way from a node to another adds to a score, and what a full load does
        if self.near:
            pull = [-self.near / 2 * torch.log(((xy[:, :, None] - xy[:, None]) ** 2).sum(-1) + NEAR_FLOOR)]
        if self.pairs:
            keys = self.ps(h) / math.sqrt(self.d)
            pull = [self.pr(h) @ keys.transpose(1, 2) + (pull[0] if pull else 0), keys @ self.pw.weight]
        return *enc, *pull

    def logits(self, enc, cur, left, mask):
        """cur [B,S], left [B,S] or the context's features [B,S,2], mask [B,S,n] True = forbidden; S rows an instance, or rows times steps."""
        left = left if self.limits else left[..., None]
        query, key, value, pointer, *pull = enc
        b, s = cur.shape
        q = query.gather(1, cur[..., None].expand(-1, -1, self.d)) + left @ self.pc.weight.T
        q = q.view(b, s, self.heads, -1).transpose(1, 2)
        g = F.scaled_dot_product_attention(q, key, value, attn_mask=~mask.unsqueeze(1))
        g = g.transpose(1, 2).reshape(b, s, self.d)
        u = g @ pointer.transpose(1, 2) / math.sqrt(self.d)
        if pull:
            u = u + pull[0].gather(1, cur[..., None].expand(-1, -1, pull[0].shape[2]))
        if self.pairs:
            u = u + left @ pull[1].transpose(1, 2)
        return (CLIP * torch.tanh(u)).masked_fill(mask, FORBIDDEN)

    def forward(self, xy, demand):
        """Greedy tours [B,T] of instances, the depot 0 between routes and behind the last, and their lengths [B]."""
        r = rollout(self, self.encode(xy, demand), xy, demand, 1, greedy=True)
        return r.actions[:, 0], r.cost[:, 0]

    def starts(self):
        """How routes from every customer begin, in the words of rollout: by force, or as seen from there."""
        return "viewed" if self.views else "forced"


def forbidden(visited, demand, left, cur):
    """Visited customers, demands over the load left; the depot at the depot; all but the depot once all are served."""
    mask = visited | (demand.unsqueeze(1) > left[..., None] + 1e-6)
    done = visited[..., 1:].all(-1)
    mask[..., 0] = (cur == 0) & ~done
    mask = torch.where(done[..., None], torch.ones_like(mask), mask)
    mask[..., 0] = torch.where(done, torch.zeros_like(done), mask[..., 0])
    return mask


class Routes:
    """All that scoring needs of S routes an instance: per step [B,S,T] action, context (load left, with limits length left too) and place before it as the policy
    sees it, mask, and whether the route was still under way."""

    def __init__(self, actions, left, mask, cur, live, cost):
        self.actions, self.left, self.mask, self.cur, self.live, self.cost = actions, left, mask, cur, live, cost


def legs(xy):
    """Distances of all nodes as the rules of a route count them (kernel.Leg): in float32, nothing fused."""
    d = xy.float()[:, :, None] - xy.float()[:, None]
    return (d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]).sqrt()


def rollout(policy, enc, xy, demand, rows, greedy=False, starts=None, actions=None, temperature=1.0, limit=None):
    """Routes by sampling, greedily, or as `actions` [B,S,T] say. starts "forced": row s begins at customer s+1; "viewed": its first customer is chosen
    as if the vehicle, full and with nobody served, stood at customer s+1. limit [B], float32: of a route's length, the way home included."""
    b, n = demand.shape
    dev = demand.device
    visited = torch.zeros(b, rows, n, dtype=torch.bool, device=dev)
    left = torch.ones(b, rows, device=dev, dtype=demand.dtype)
    cur = torch.zeros(b, rows, dtype=torch.long, device=dev)
    cost = torch.zeros(b, rows, device=dev, dtype=demand.dtype)
    at = torch.arange(b, device=dev)[:, None]
    own = torch.arange(1, rows + 1, device=dev)[None].expand(b, rows)
    length = torch.zeros(b, rows, device=dev, dtype=torch.float32)
    way = legs(xy) if limit is not None else None
    steps = []
    for t in range(2 * (n - 1) if actions is None else actions.shape[2]):
        mask, context = forbidden(visited, demand, left, cur), left
        if limit is not None:
            far = length[..., None] + way[at, cur] + way[:, None, 0] > limit[:, None, None]
            far[..., 0] = False
            mask = mask | far
            context = torch.stack([left, 1 - length.to(left.dtype) / limit.to(left.dtype)[:, None]], -1)
        live = ~(visited[..., 1:].all(-1) & (cur == 0))
        seen = own if t == 0 and starts == "viewed" else cur
        if actions is not None:
            act = actions[:, :, t]
        elif t == 0 and starts == "forced":
            act = own
        else:
            lg = policy.logits(enc, seen, context, mask)
            act = lg.argmax(-1) if greedy else torch.distributions.Categorical(logits=lg / temperature).sample()
        steps.append((act, context, mask, seen, live))
        cost = cost + (xy[at, act] - xy[at, cur]).norm(dim=-1)
        left = torch.where(act == 0, torch.ones_like(left), left - demand[at, act])
        if limit is not None:
            length = torch.where(act == 0, torch.zeros_like(length), length + way[at, cur, act])
        visited = visited.clone()
        visited.scatter_(2, act[..., None], True)
        visited[..., 0] = False
        cur = act
        if actions is None and t >= n - 1 and t % 2 == 0 and bool((visited[..., 1:].all(-1) & (cur == 0)).all()):
            break
    return Routes(*(torch.stack(s, 2) for s in zip(*steps)), cost)


def score(policy, enc, r, starts=None, temperature=1.0):
    """Σ log π of each route and the mean entropy of its decisions, a forced first action and idle steps left out."""
    b, s, t = r.actions.shape
    lg = policy.logits(enc, r.cur.reshape(b, s * t), r.left.reshape(b, s * t, *r.left.shape[3:]), r.mask.reshape(b, s * t, -1))
    logp = F.log_softmax(lg / temperature, -1)
    chosen = logp.gather(2, r.actions.reshape(b, s * t, 1)).view(b, s, t)
    entropy = -(logp.exp() * logp).sum(-1).view(b, s, t)
    real = r.live.clone()
    if starts == "forced":
        real[:, :, 0] = False
    real = real.to(logp.dtype)
    return (chosen * real).sum(2), (entropy * real).sum(2) / real.sum(2)


# A layer's parameters: Haul's names, and this module's.
PARTS = [("qkv.weight", "qkv.weight"), ("slope", "slope")] + [
    (f"{ours}.{part}", f"{here}.{part}")
    for ours, here in [("norm1", "n1"), ("out", "o"), ("norm2", "n2"), ("gate", "g"), ("down", "w")] for part in ("weight", "bias")]


def names(layers, pairs=False, parts=PARTS, limits=False):
    """Haul's name -> (names here, how to join them). docs/parameters.md is this table in words."""
    rows = lambda *t: torch.cat(t, 0)
    same = lambda t: t
    column = (lambda t: t.T) if limits else (lambda t: t[:, 0])
    what = "context" if limits else "load"
    out = {"embed.weight": (["emb.weight"], same), "embed.bias": (["emb.bias"], same)}
    for i in range(layers):
        for ours, here in parts:
            out[f"layers.{i}.{ours}"] = ([f"layers.{i}.{here}"], same)
    out["norm.weight"], out["norm.bias"] = (["nf.weight"], same), (["nf.bias"], same)
    out["decoder.proj.weight"] = (["pq.weight", "pk.weight", "pv.weight", "pl.weight"] + ["pr.weight", "ps.weight"] * pairs, rows)
    out["decoder.graph.weight"] = (["pg.weight"], same)
    out[f"decoder.{what}.weight"] = (["pc.weight"], column)
    out["decoder.pointer.weight"] = (["po.weight"], lambda t: t.T)
    if pairs:
        out[f"decoder.pair_{what}.weight"] = (["pw.weight"], column)
    return out


def export(tensors, layers, parts=PARTS):
    """This module's tensors (weights or gradients, by name) under Haul's names."""
    return {ours: join(*(tensors[h] for h in here)).contiguous() for ours, (here, join) in names(layers, "pw.weight" in tensors, parts, tensors["pc.weight"].shape[1] > 1).items()}


def load(model, tensors):
    """Copies tensors by Haul's names into the model; every parameter of both sides is used once."""
    own = dict(model.named_parameters())
    left = set(own)
    with torch.no_grad():
        for ours, (here, _) in names(len(model.layers), model.pairs, model.parts, model.limits).items():
            t = tensors[ours]
            if ours == "decoder.pointer.weight":
                t = t.T
            elif ours in ("decoder.load.weight", "decoder.pair_load.weight"):
                t = t[:, None]
            elif ours in ("decoder.context.weight", "decoder.pair_context.weight"):
                t = t.T
            for h, part in zip(here, t.chunk(len(here), 0)):
                own[h].copy_(part)
                left.discard(h)
    assert not left, f"no value for {sorted(left)}"


def of(tensors, settings):
    """The model that a checkpoint's tensors and settings describe."""
    m = settings["model"]
    model = GT(m["hidden_dim"], m["num_layers"], m["num_heads"], m["feedforward_multiplier"], m.get("pointer_distance", 0.0),
               m.get("pointer_pairs", False), m.get("start_views", False), settings["problem"].get("max_route_length", 0) > 0)
    load(model, tensors)
    return model


def philox(seed, index, draw, purpose):
    """Philox4x32-10 as internal/rng numbers it: arrays of counters in, four arrays of words out."""
    index, draw = np.broadcast_arrays(np.asarray(index, np.uint64), np.asarray(draw, np.uint64))
    low = np.uint64(0xFFFFFFFF)
    c = [index & low, index >> np.uint64(32), draw & low, np.full(index.shape, purpose, np.uint64)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [p1 >> np.uint64(32) ^ c[1] ^ np.uint64(k0), p1 & low, p0 >> np.uint64(32) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def instances(seed, purpose, first, count, problem):
    """The instances that Haul draws: xy [B,N+1,2] and integer demands [B,N+1]."""
    n, below = problem["num_customers"], lambda u, k: u * np.uint64(k) >> np.uint64(32)
    x, y, q, _ = philox(seed, np.arange(first, first + count)[:, None], np.arange(n + 1)[None], purpose)
    if problem["distribution"] == "grid":
        side = problem["coord_range"]
        xy = np.stack([below(x, side + 1), below(y, side + 1)], -1).astype(np.float32) / np.float32(side)
    else:
        xy = np.stack([x >> np.uint64(8), y >> np.uint64(8)], -1).astype(np.float32) * np.float32(2**-24)
    lo, hi = problem["demand_range"]
    demand = lo + below(q, hi - lo + 1).astype(np.int64)
    demand[:, 0] = 0
    return torch.from_numpy(xy), torch.from_numpy(demand)
