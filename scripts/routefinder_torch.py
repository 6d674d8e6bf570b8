#!/usr/bin/env python3
"""How fast PyTorch trains one policy for many kinds of routing problems, in RouteFinder's way.

  python scripts/routefinder_torch.py --customers 100 --batch 256 --steps 5

What RouteFinder's training does (https://arxiv.org/abs/2406.15007), written anew: a batch whose instances draw open
routes, backhauls, limits of length and time windows each with probability 1/2, an encoder of six layers and eight heads
(RMS norm, gated feed-forward layers), a step of the environment and of the decoder at a time with the gradient recorded
as it goes, N starts per instance, REINFORCE with the mean over the starts, costs divided by a mean per variant, Adam.
One depot. Every step's tensors are kept for the gradient; matrices are multiplied in bf16 (--precision tf32: in tf32).
Prints one JSON object: the median of `steps` steps after two, and instances per second. --check walks a few instances on
the CPU and holds their routes to the rules by code of its own.
"""

import argparse
import json
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--customers", type=int, default=100)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--precision", choices=["bf16", "tf32"], default="bf16")
parser.add_argument("--check", action="store_true")
args = parser.parse_args()

import torch  # behind the flags: --help needs no package
import torch.nn as nn
import torch.nn.functional as F

END = 4.6  # vehicles are back by then
INF = float("inf")


def draw(b, n, device, generator):
    """Instances as RouteFinder draws them: places, demands as shares of the capacity, windows, limits."""
    rand = lambda *shape: torch.rand(*shape, device=device, generator=generator)
    capacity = 30 + n // 5
    xy = rand(b, n + 1, 2)
    has = rand(b, 4) < 0.5  # open, backhauls, limit, windows
    amount = torch.randint(1, 10, (b, n), device=device, generator=generator) / capacity
    pickup = (rand(b, n) < 0.2) & has[:, 1:2]
    zero = torch.zeros(b, 1, device=device)
    line, back = torch.cat([zero, amount * ~pickup], 1), torch.cat([zero, amount * pickup], 1)
    home = (xy - xy[:, :1]).norm(dim=-1)
    service, width = 0.15 + 0.03 * rand(b, n), 0.18 + 0.02 * rand(b, n)
    d = home[:, 1:]
    start = (1 + ((END - service - width) / d - 2) * rand(b, n)) * d
    tw = has[:, 3:4]
    early = torch.cat([zero, torch.where(tw, start, 0)], 1)
    late = torch.cat([torch.where(tw, END, INF), torch.where(tw, start + width, INF)], 1)
    service = torch.cat([zero, torch.where(tw, service, 0)], 1)
    low = 2 * home.amax(1)
    limit = torch.where(has[:, 2], low + rand(b) * (low.clamp(min=2.8) - low), INF)
    kind = (has * torch.tensor([1, 2, 4, 8], device=device)).sum(1)
    return dict(xy=xy, line=line, back=back, early=early, late=late, service=service, limit=limit, open=has[:, 0], kind=kind, home=home)


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.gate, self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Policy(nn.Module):
    def __init__(self, d=128, heads=8, layers=6):
        super().__init__()
        self.d, self.heads = d, heads
        self.depot, self.customer = nn.Linear(5, d), nn.Linear(7, d)
        self.layers, self.norm = nn.ModuleList(Layer(d, heads) for _ in range(layers)), nn.RMSNorm(d)
        self.kv, self.key, self.query, self.out = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, d, bias=False), nn.Linear(d + 5, d, bias=False), nn.Linear(d, d, bias=False)

    def encode(self, p):
        finite = lambda x: torch.where(torch.isinf(x), 0, x)
        depot = torch.stack([p["xy"][:, 0, 0], p["xy"][:, 0, 1], p["open"].float(), finite(p["limit"]), finite(p["late"][:, 0])], -1)
        c = torch.stack([p["xy"][..., 0], p["xy"][..., 1], p["line"], p["back"], p["early"], finite(p["late"]), p["service"]], -1)[:, 1:]
        h = torch.cat([self.depot(depot)[:, None], self.customer(c)], 1).float()
        for layer in self.layers:
            h = layer(h)
        h = self.norm(h)
        b, n, d = h.shape
        k, v = self.kv(h).view(b, n, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        return h, k, v, self.key(h)

    def logits(self, enc, at, state, mask):
        """Of all starts: at [B,S] nodes, state [B,S,5], mask [B,S,N] of what is allowed."""
        h, k, v, key = enc
        b, s = at.shape
        here = h.gather(1, at[..., None].expand(b, s, self.d))
        q = self.query(torch.cat([here, state.to(here.dtype)], -1)).view(b, s, self.heads, -1).transpose(1, 2)
        g = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        g = self.out(g.transpose(1, 2).reshape(b, s, self.d))
        u = 10 * torch.tanh(torch.einsum("bsd,bnd->bsn", g, key).float() / self.d**0.5)
        return u.masked_fill(~mask, -INF)


class Routes:
    """S routes of each instance, a step at a time."""

    def __init__(self, p, s):
        self.p, self.s = p, s
        b, n = p["line"].shape
        zeros = lambda: torch.zeros(b, s, device=p["xy"].device)
        self.at = torch.zeros(b, s, dtype=torch.long, device=p["xy"].device)
        self.used, self.picked, self.time, self.length, self.cost = zeros(), zeros(), zeros(), zeros(), zeros()
        self.served = torch.zeros(b, s, n, dtype=torch.bool, device=p["xy"].device)
        self.served[..., 0] = True
        self.dist = torch.cdist(p["xy"], p["xy"])
        self.eps = 1e-5

    def of(self, x, at):
        return x.gather(1, at)

    def mask(self):
        p, b, n = self.p, *self.p["line"].shape
        row = self.dist.gather(1, self.at[..., None].expand(b, self.s, n))
        wide = lambda x: x[:, None]
        home = wide(torch.where(p["open"][:, None], 0, p["home"]))
        arrive = self.time[..., None] + row
        leave = torch.maximum(arrive, wide(p["early"])) + wide(p["service"])
        ok = (arrive <= wide(p["late"]) + self.eps) & (leave + home <= wide(p["late"][:, :1]) + self.eps)
        ok &= self.length[..., None] + row + home <= p["limit"][:, None, None] + self.eps
        line, back = wide(p["line"]), wide(p["back"])
        ok &= (line == 0) | ((self.used[..., None] + line <= 1 + self.eps) & (self.picked[..., None] == 0))
        ok &= self.picked[..., None] + back <= 1 + self.eps
        ok = (ok | (self.at == 0)[..., None]) & ~self.served
        done = self.served.all(-1)
        ok[..., 0] = (self.at != 0) | done
        return ok

    def state(self):
        p = self.p
        left = lambda x, of: torch.where(torch.isinf(of), 0, of - x)
        return torch.stack([1 - self.used, 1 - self.picked, self.time, left(self.length, p["limit"][:, None]), p["open"][:, None].expand_as(self.time).float()], -1)

    def go(self, a):
        p, back = self.p, a == 0
        way = self.dist.gather(1, self.at[..., None].expand(*a.shape, self.dist.shape[-1])).gather(2, a[..., None])[..., 0]
        self.cost = self.cost + torch.where(back & p["open"][:, None], 0, way)
        self.length = torch.where(back, 0, self.length + way)
        self.time = torch.where(back, 0, torch.maximum(self.time + way, self.of(p["early"], a)) + self.of(p["service"], a))
        self.used = torch.where(back, 0, self.used + self.of(p["line"], a))
        self.picked = torch.where(back, 0, self.picked + self.of(p["back"], a))
        self.served = self.served.scatter(2, a[..., None], True)
        self.at = a

    def over(self):
        return bool((self.served.all(-1) & (self.at == 0)).all())


def roll(policy, p, s, keep=None):
    enc, r = policy.encode(p), Routes(p, s)
    log = 0.0
    a = torch.arange(1, s + 1, device=p["xy"].device).expand(r.at.shape)
    while True:
        if keep is not None:
            keep.append(a.clone())
        r.go(a)
        if r.over():
            return r.cost, log
        mask = r.mask()
        lp = policy.logits(enc, r.at, r.state(), mask).log_softmax(-1)
        a = torch.multinomial(lp.detach().exp().flatten(0, 1), 1).view(r.at.shape)
        log = log + lp.gather(2, a[..., None])[..., 0]


def check():
    """Every customer once, loads, windows and limits kept, the cost that of the routes."""
    g = torch.Generator().manual_seed(1)
    p, policy, seen = draw(16, 12, "cpu", g), Policy(), []
    with torch.no_grad():
        cost, _ = roll(policy, p, 12, seen)
    tours = torch.stack(seen, -1)
    for i in range(16):
        for s in range(12):
            at, t, length, load, picked, total, left = 0, 0.0, 0.0, 0.0, 0.0, 0.0, set(range(1, 13))
            for a in tours[i, s].tolist():
                way = float((p["xy"][i, a] - p["xy"][i, at]).norm())
                if a == 0:
                    total += 0 if p["open"][i] else way
                    assert p["open"][i] or t + way <= p["late"][i, 0] + 1e-4 and length + way <= p["limit"][i] + 1e-4
                    t = length = load = picked = 0.0
                else:
                    left.remove(a)
                    total, length, t = total + way, length + way, max(t + way, float(p["early"][i, a]))
                    load, picked = load + float(p["line"][i, a]), picked + float(p["back"][i, a])
                    assert t <= p["late"][i, a] + 1e-4 and length <= p["limit"][i] + 1e-4 and max(load, picked) <= 1 + 1e-4
                    assert p["line"][i, a] == 0 or picked == 0, "a delivery behind a pickup"
                    t += float(p["service"][i, a])
                at = a
            assert not left and at == 0 and abs(total - float(cost[i, s])) < 1e-3
    print("16 instances, 12 routes each: all rules kept")


def main():
    if args.check:
        return check()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    cuda = args.device.startswith("cuda")
    g = torch.Generator(args.device).manual_seed(1)
    policy = Policy().to(args.device)
    adam, mean, times = torch.optim.Adam(policy.parameters(), lr=3e-4, weight_decay=1e-6), torch.zeros(16, device=args.device), []
    for _ in range(args.steps + 2):
        if cuda:
            torch.cuda.synchronize()
        began = time.perf_counter()
        p = draw(args.batch, args.customers, args.device, g)
        with torch.autocast("cuda" if cuda else "cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            cost, log = roll(policy, p, args.customers)
        with torch.no_grad():  # costs over an exponential mean per variant
            zero = torch.zeros(16, device=args.device)
            own = zero.index_add(0, p["kind"], cost.mean(1)) / zero.index_add(0, p["kind"], torch.ones_like(cost[:, 0])).clamp(min=1)
            mean = torch.where(own == 0, mean, torch.where(mean == 0, own, 0.75 * mean + 0.25 * own))
            adv = (cost - cost.mean(1, keepdim=True)) / mean[p["kind"]][:, None]
        adam.zero_grad()
        (adv * log).mean().backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        adam.step()
        if cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    step = sorted(times[2:])[args.steps // 2]
    memory = torch.cuda.max_memory_allocated() / 2**30 if cuda else None
    print(json.dumps(dict(customers=args.customers, batch=args.batch, seconds=step, instances_per_second=args.batch / step, mean_cost=float(cost.mean()),
                          precision=args.precision, gib=memory, device=torch.cuda.get_device_name() if cuda else "cpu", torch=torch.__version__)))


if __name__ == "__main__":
    main()
