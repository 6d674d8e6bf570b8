"""Races Haul's training step of the in-context agent against the same model in PyTorch, on the same cores, in one run.

  python scripts/race_ad.py [--threads 2] [--rounds 3]      # needs torch (CPU, MKL) and go
  python scripts/race_ad.py --threads 1 --tokens 4096 --precision bf16 --attention-dropout 0

Both sides draw 512 rows of 80 transitions from learning histories in memory, embed, run four layers of width 64 with dropout 0.1 in the
residual stream and in attention, two classifiers, backward, clip and AdamW, in fp32, as ad_dr.yaml has it. PyTorch runs eagerly and compiled where its compiler
works, with its own attention and with one written out, the batch at once and in chunks that stay in cache; a first round picks its fastest ways, which
then take turns with Haul, some seconds each. A side's figure is the median of its turns' medians, and beside it stands the fastest tenth of its quietest
turn: where the two ratios differ, something else had the cores. The third figure is the processor time of a step on all threads, least of the turns; with --threads 1 nobody
spends it waiting for a thread that was held up.

With --precision bf16 Haul's products are in bf16, and PyTorch is tried under autocast beside fp32: its fastest way counts, whichever it is. PyTorch's
flash attention on a processor knows no dropout, so that its own attention falls back to whole matrices of probabilities; --attention-dropout 0 lets it
have flash attention, and leaves the dropout of the residual stream.
"""

import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import needs

ap = needs.flags(__doc__)
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--rounds", type=int, default=3)
ap.add_argument("--seconds", type=float, default=8, help="of a turn")
ap.add_argument("--tokens", type=int, default=80, help="of a row")
ap.add_argument("--batch", type=int, help="rows of a step; as many as have 40,960 tokens where it is not given")
ap.add_argument("--width", type=int, default=64, help="of the network; the feed-forward layer has four times that")
ap.add_argument("--heads", type=int, default=4)
ap.add_argument("--layers", type=int, default=4)
ap.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
ap.add_argument("--attention-dropout", type=float, default=0.1)
ap.add_argument("--ways", type=int, default=2, help="PyTorch's fastest ways that go on after the first round, by the clock and by processor time each")
ap.add_argument("--only", default="", help="only PyTorch's ways whose names have this in them: --only 'its attention, whole batch'")
ap.add_argument("--json", action="store_true")
FLAGS = ap.parse_args()
needs.packages("torch")

import torch
import torch.nn.functional as F

import ad_torch as ad

TOKENS, WIDTH, LAYERS, HEADS, FEED, DROPOUT, ATTENTION = FLAGS.tokens, FLAGS.width, FLAGS.layers, FLAGS.heads, 4 * FLAGS.width, 0.1, FLAGS.attention_dropout
BATCH = FLAGS.batch or max(1, 512 * 80 // TOKENS)
SIZE, ACTIONS, STREAMS, STEPS, HORIZON = 9, 5, 8, max(1000, 4 * TOKENS), 20
CHUNK = max(n for n in range(1, BATCH + 1) if BATCH % n == 0 and (n == 1 or n * TOKENS <= 64 * 80))  # rows that stay in cache


class Agent(ad.AD):
    """The model with dropout, for rows that are one sequence each: no mask but the causal one."""

    def __init__(self, fused):
        super().__init__(WIDTH, HEADS, LAYERS, FEED, TOKENS, SIZE, ACTIONS)
        self.fused = fused
        self.register_buffer("hidden", torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1))

    def attend(self, q, k, v, drop):
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=drop)
        s = ((q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5).float()
        return F.dropout(torch.softmax(s.masked_fill(self.hidden, float("-inf")), -1), drop).to(v.dtype) @ v

    def logits(self, index):
        """index has one past the last row of a table for a field that is absent."""
        drop, weights = (DROPOUT, ATTENTION) if self.training else (0.0, 0.0)
        x = sum(F.embedding(index[..., f], F.pad(self.embed[name].weight, (0, 0, 0, 1))) for f, name in enumerate(ad.FIELDS))
        b, t, d = x.shape
        for l in self.layers:
            q, k, v = l.qkv(l.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            x = x + F.dropout(l.out(self.attend(q, k, v, weights).transpose(1, 2).reshape(b, t, d)), drop)
            x = x + F.dropout(l.down(F.gelu(l.up(l.norm2(x)), approximate="tanh")), drop)
        return self.head(self.norm(x))

    def forward(self, index, actions):
        z = self.logits(index)[..., :ACTIONS]
        return F.cross_entropy(z.flatten(0, 1), actions.flatten()), (z.argmax(-1) == actions).sum()


class Step:
    """The training step an expert would write."""

    def __init__(self, compiled, fused, rows, rounds):
        torch.manual_seed(1)
        self.x, self.y = torch.randint(0, SIZE, (2, STREAMS * STEPS))
        self.action, self.reward = torch.randint(0, ACTIONS, (STREAMS * STEPS,)), torch.randint(0, 2, (STREAMS * STEPS,))
        self.position, self.rows, self.hits, self.rounds = torch.arange(TOKENS), rows, 0, rounds
        self.net = Agent(fused)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.01, fused=True)
        self.run = torch.compile(self.net) if compiled else self.net
        self.check()

    def check(self):
        """Without dropout the shortcuts change nothing."""
        index, _ = self.draw()
        some = min(BATCH, 8 if TOKENS < 1000 else 1)
        plain = torch.where(index >= torch.tensor((SIZE, SIZE, ACTIONS, 2, ad.TYPES, TOKENS)), -1, index)[:some]
        self.net.eval()
        with torch.no_grad():
            torch.testing.assert_close(self.net.logits(index[:some]), ad.AD.forward(self.net, plain, torch.zeros(some, TOKENS, dtype=torch.long)))
        self.net.train()

    def draw(self):
        episodes = torch.randint(0, STEPS // HORIZON - TOKENS // HORIZON + 1, (BATCH, 1))
        at = torch.randint(0, STREAMS, (BATCH, 1)) * STEPS + episodes * HORIZON + self.position
        last, begun = (at - 1).clamp(min=0), (at % STEPS > 0)
        fields = (self.x[at], self.y[at], torch.where(begun, self.action[last], ACTIONS), torch.where(begun, self.reward[last], 2),
                  torch.zeros_like(at), self.position.expand_as(at))
        return torch.stack(fields, -1), self.action[at]

    def __call__(self):
        index, actions = self.draw()
        self.optimizer.zero_grad()
        for i, a in zip(index.split(self.rows), actions.split(self.rows)):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.rounds):
                loss, hits = self.run(i, a)
            (loss * (len(i) / BATCH)).backward()
            self.hits += hits
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()

    def turn(self, seconds, least=5):
        took, end, spent = [], time.perf_counter() + seconds, time.process_time()
        while time.perf_counter() < end or len(took) < least:
            start = time.perf_counter()
            self()
            took.append(time.perf_counter() - start)
        took.sort()
        return {"ms_per_step": 1e3 * statistics.median(took), "ms_p10": 1e3 * took[len(took) // 10], "ms_cpu": 1e3 * (time.process_time() - spent) / len(took)}


def fastest():
    """PyTorch's two fastest ways by the clock and by processor time, by name, each warm."""
    ways = {}
    for compiled, fused, rows, rounds in itertools.product((False, True), (True, False), dict.fromkeys((BATCH, CHUNK)),
                                                           (False, True) if FLAGS.precision == "bf16" else (False,)):
        name = ", ".join(("compiled" if compiled else "eager", "its attention" if fused else "attention written out",
                          "whole batch" if rows == BATCH else f"chunks of {rows}") + ("bf16 autocast",) * rounds)
        if FLAGS.only not in name:
            continue
        try:
            step = Step(compiled, fused, rows, rounds)
            best = min((took["ms_cpu"] for _, took in ways.values()), default=math.inf)
            first = step.turn(0, 1)["ms_cpu"]
            if compiled or first < 4 * best:  # the others are out, and so are those that stay above twice the best
                once = step.turn(0, 1)["ms_cpu"]
                if once < 2 * best:
                    ways[name] = step, step.turn(0, 3)
        except Exception as e:  # no C++ compiler, or a graph it cannot take
            print(f"PyTorch {name} does not work here: {str(e).splitlines()[0]}")
    if not ways:
        sys.exit(f"race_ad.py: no way of PyTorch has {FLAGS.only!r} in its name, or none works here")
    ranked = [n for key in ("ms_p10", "ms_cpu") for n in sorted(ways, key=lambda n: ways[n][1][key])[:FLAGS.ways]]
    return {n: ways[n][0] for n in dict.fromkeys(ranked)}


class Haul:
    """Steps of the benchmark BenchmarkAgent, built once."""

    def __init__(self, threads):
        self.root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
        self.binary = os.path.join(tempfile.mkdtemp(), "agent.test")
        self.env = dict(os.environ, GOMAXPROCS=str(threads))
        subprocess.run(["go", "test", "-c", "-o", self.binary, "./internal/kernel/cpu"], cwd=self.root, check=True)

    def turn(self, seconds):
        out = subprocess.run([self.binary, "-test.run", "^$", "-test.bench", "^BenchmarkAgent$", "-test.benchtime", f"{seconds}s",
                              "-agent.tokens", str(TOKENS), "-agent.batch", str(BATCH), "-agent.width", str(WIDTH), "-agent.heads", str(HEADS),
                              "-agent.layers", str(LAYERS), "-agent.precision", FLAGS.precision, "-agent.attention_dropout", str(ATTENTION)],
                             check=True, capture_output=True, text=True, env=self.env).stdout
        figure = lambda unit: float(re.search(r"([\d.]+) " + unit + r"\b", out).group(1))
        return {"ms_per_step": figure("ms/median"), "ms_p10": figure("ms/p10"), "ms_cpu": figure("cpu-ms/op")}


def main():
    a = FLAGS
    torch.set_num_threads(a.threads)
    haul, modes = Haul(a.threads), fastest()
    times, ours = {m: [] for m in modes}, []
    for _ in range(a.rounds):
        for name, step in modes.items():
            times[name].append(step.turn(a.seconds))
        ours.append(haul.turn(a.seconds))
    median = lambda turns: statistics.median(t["ms_per_step"] for t in turns)
    quiet = lambda turns: min(t["ms_p10"] for t in turns)
    cpu = lambda turns: min(t["ms_cpu"] for t in turns)
    best = {f: min(times, key=lambda m: f(times[m])) for f in (median, quiet, cpu)}
    ratio = {f: f(times[best[f]]) / f(ours) for f in best}
    if a.json:
        print(json.dumps({"torch": torch.__version__, "threads": a.threads, "torch_ms": {m: median(t) for m, t in times.items()},
                          "torch_ms_quiet": {m: quiet(t) for m, t in times.items()}, "haul_ms": median(ours), "haul_ms_quiet": quiet(ours),
                          "torch_ms_cpu": {m: cpu(t) for m, t in times.items()}, "haul_ms_cpu": cpu(ours), "ratio": ratio[median], "ratio_quiet": ratio[quiet], "ratio_cpu": ratio[cpu]}))
        return
    line = lambda who, turns: print(f"{who:66} {median(turns):7.1f} ms per step, at its quietest {quiet(turns):7.1f}, processor time {cpu(turns):7.1f}  {BATCH * TOKENS / quiet(turns) * 1e3:8.0f} tokens/s")
    for name, turns in times.items():
        line(f"PyTorch {torch.__version__} {name}", turns)
    line("Haul", ours)
    print("ratio to PyTorch's fastest: " + ", ".join(f"{ratio[f]:.2f} {what} ({best[f]})"
                                                     for f, what in ((median, "by medians"), (quiet, "at the quietest"), (cpu, "by processor time"))))


if __name__ == "__main__":
    needs.run(main)
