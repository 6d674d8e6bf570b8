"""Times the training step of the in-context agent in PyTorch on a GPU, compiled: what `haul bench step` is set beside.

  python scripts/ad_torch_gpu.py        # 164, 1,024 and 4,096 tokens, 168,000 of all rows
  python scripts/ad_torch_gpu.py 80x512 --width 64 --heads 4 --layers 4

A shape is TOKENSxROWS. The network is that of ad_dr_compressed.yaml: sums of embeddings, pre-norm layers with dropout 0.1 in the residual stream and in attention,
PyTorch's own attention (flash attention where it has a kernel), GELU in its tanh form, a classifier, bf16 autocast, clipping, fused AdamW, all
under torch.compile. Rows lie on the card already, and each is one sequence. A figure is the median of five turns of eight steps by the card's own clock.
"""

import json
import statistics

import needs

ap = needs.flags(__doc__)
ap.add_argument("shapes", nargs="*", default=["164x1024", "1024x164", "4096x41"])
ap.add_argument("--width", type=int, default=128, help="of the network; the feed-forward layer has four times that")
ap.add_argument("--heads", type=int, default=8)
ap.add_argument("--layers", type=int, default=6)
ap.add_argument("--dropout", type=float, default=0.1)
ap.add_argument("--eager", action="store_true", help="without torch.compile")
ap.add_argument("--json", action="store_true")
FLAGS = ap.parse_args()
needs.packages("torch")

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES, ACTIONS, TYPES = (9, 9, 5, 2, 3), 5, 3


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, drop):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=drop)
        x = x + F.dropout(self.out(y.transpose(1, 2).reshape(b, t, d)), drop)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), drop)


class Agent(nn.Module):
    def __init__(self, tokens, d, heads, layers):
        super().__init__()
        self.embed = nn.ModuleList(nn.Embedding(n, d) for n in (*SIZES, tokens))
        self.layers = nn.ModuleList(Layer(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, ACTIONS + TYPES)

    def forward(self, index, actions):
        x = sum(e(index[..., i]) for i, e in enumerate(self.embed))
        for layer in self.layers:
            x = layer(x, FLAGS.dropout)
        z = self.head(self.norm(x))
        return F.cross_entropy(z[..., :ACTIONS].flatten(0, 1).float(), actions.flatten())


def step(tokens, rows):
    """A step over rows that lie on the card, warm."""
    net = Agent(tokens, FLAGS.width, FLAGS.heads, FLAGS.layers).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.01, fused=True)
    run = net if FLAGS.eager else torch.compile(net)
    draw = lambda n: torch.randint(0, n, (rows, tokens), device="cuda")
    index = torch.stack([draw(n) for n in SIZES] + [torch.arange(tokens, device="cuda").expand(rows, -1)], -1)
    actions = draw(ACTIONS)

    def once():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(index, actions)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    for _ in range(3):
        once()
    return once


def turn(once, steps=8):
    """Milliseconds of a step."""
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begun.record()
    for _ in range(steps):
        once()
    ended.record()
    ended.synchronize()
    return begun.elapsed_time(ended) / steps


def main():
    if not torch.cuda.is_available():
        return f"{needs.NAME}: PyTorch sees no GPU"
    out = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
    for shape in FLAGS.shapes:
        tokens, _, rows = shape.partition("x")
        if not (tokens.isdigit() and rows.isdigit() and int(tokens) and int(rows)):
            return f"{needs.NAME}: {shape!r} is no shape: write TOKENSxROWS, 164x1024"
        once = step(int(tokens), int(rows))
        out[shape] = statistics.median(turn(once) for _ in range(5))
        if not FLAGS.json:
            print(f"{rows} rows of {tokens} tokens: {out[shape]:.2f} ms per step, PyTorch {out['torch']}, {out['gpu']}", flush=True)
    if FLAGS.json:
        print(json.dumps(out))


if __name__ == "__main__":
    needs.run(main)
