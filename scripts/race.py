"""Races Haul's training step against the same model in PyTorch, on the same cores, in one run.

  python scripts/race.py --haul bin/haul [--threads 2] [--rounds 5]      # needs torch (CPU, MKL)

Both sides draw instances, encode, sample, run the greedy baseline, score, go backward, clip and update: N = 10, batch 128, rollout
baseline. They take turns, a few seconds each; a side's figure is the median of its turns' medians, and beside it stands the
fastest tenth of its quietest turn: where the two ratios differ, something else had the cores. PyTorch runs eagerly and compiled where its compiler works, each in fp32 and
under bf16 autocast, and its fastest mode counts; Haul runs in fp32 and in bf16.
"""

import json
import statistics
import subprocess
import sys
import time

import needs

ap = needs.flags(__doc__)
ap.add_argument("--haul", default="haul", help="the program")
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--rounds", type=int, default=5)
ap.add_argument("--seconds", type=float, default=4, help="of a turn")
ap.add_argument("--modes", default="eager,eager bf16,compiled,compiled bf16", help="of PyTorch; bf16 is under autocast")
ap.add_argument("--precisions", default="fp32,bf16", help="of Haul")
ap.add_argument("--json", action="store_true")
FLAGS = ap.parse_args()
needs.packages("torch", "numpy")

import torch

import gt_torch as gt

N, BATCH, CAPACITY, WIDTH, LAYERS, HEADS = 10, 128, 30, 128, 3, 4


class Step:
    """The training step an expert would write."""

    def __init__(self, compiled, autocast):
        self.autocast = autocast
        torch.manual_seed(1)
        self.policy, self.frozen = gt.GT(WIDTH, LAYERS, HEADS), gt.GT(WIDTH, LAYERS, HEADS)
        self.frozen.load_state_dict(self.policy.state_dict())
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)
        if compiled:
            for m in (self.policy, self.frozen):
                m.encode, m.logits = torch.compile(m.encode), torch.compile(m.logits, dynamic=True)

    def __call__(self):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            loss = self.loss()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 2.0)
        self.optimizer.step()

    def loss(self):
        xy = torch.randint(0, 101, (BATCH, N + 1, 2)).float() / 100
        demand = torch.randint(1, 11, (BATCH, N + 1)).float() / CAPACITY
        demand[:, 0] = 0
        enc = self.policy.encode(xy, demand)
        with torch.no_grad():
            routes = gt.rollout(self.policy, tuple(e.detach() for e in enc), xy, demand, 1)
            base = gt.rollout(self.frozen, self.frozen.encode(xy, demand), xy, demand, 1, greedy=True).cost
        b, s, t = routes.actions.shape
        lg = self.policy.logits(enc, routes.cur.reshape(b, s * t), routes.left.reshape(b, s * t), routes.mask.reshape(b, s * t, -1))
        logp = torch.log_softmax(lg, -1).gather(2, routes.actions.reshape(b, s * t, 1)).view(b, s, t)
        return ((routes.cost - base) * logp.sum(2)).mean()

    def turn(self, seconds):
        took, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(took) < 3:
            start = time.perf_counter()
            self()
            took.append(time.perf_counter() - start)
        took.sort()
        return {"ms_per_step": 1e3 * statistics.median(took), "ms_p10": 1e3 * took[len(took) // 10]}


def tell(what):
    print(what, file=sys.stderr, flush=True)


def haul_turn(args, precision, seconds, guess):
    rounds = max(11, int(1e3 * seconds / guess))
    line = subprocess.run([args.haul, "bench", "step", "--config", "tiny_1", "--device", "cpu", "--workers", str(args.threads),
                           "--precision", precision, "--rounds", str(rounds), "--json"],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(line)


def main():
    a = FLAGS
    a.haul = needs.program(a.haul)
    torch.set_num_threads(a.threads)
    modes = {}
    for compiled in (False, True):
        for autocast in (False, True):
            name = ("compiled" if compiled else "eager") + (" bf16" if autocast else "")
            if name not in a.modes.split(","):
                continue
            tell(f"preparing PyTorch {name}")
            try:
                step = Step(compiled, autocast)
                step.turn(1)
                modes[name] = step
            except Exception as e:  # no C++ compiler, or a graph it cannot take
                print(f"PyTorch {name} does not work here: {str(e).splitlines()[0]}")
    times, ours = {m: [] for m in modes}, {p: [] for p in a.precisions.split(",")}
    for i in range(a.rounds):
        tell(f"round {i + 1} of {a.rounds}")
        for name, step in modes.items():
            times[name].append(step.turn(a.seconds))
        for p, turns in ours.items():
            turns.append(haul_turn(a, p, a.seconds, turns[-1]["ms_per_step"] if turns else 50))
    median = lambda turns: statistics.median(t["ms_per_step"] for t in turns)
    quiet = lambda turns: min(t["ms_p10"] for t in turns)
    best = {f: min(times, key=lambda m: f(times[m])) for f in (median, quiet)}
    ratio = {p: {f: f(times[best[f]]) / f(turns) for f in best} for p, turns in ours.items()}
    share = {p: max(o["share_of_peak"] for o in turns) for p, turns in ours.items()}
    if a.json:
        print(json.dumps({"torch": torch.__version__, "threads": a.threads, "torch_ms": {m: median(t) for m, t in times.items()},
                          "torch_ms_quiet": {m: quiet(t) for m, t in times.items()}, 
                          "haul": {p: {"device": t[0]["device"], "ms": median(t), "ms_quiet": quiet(t), "share_of_peak": share[p],
                                       "ratio": ratio[p][median], "ratio_quiet": ratio[p][quiet]} for p, t in ours.items()}}))
        return
    line = lambda who, turns: print(f"{who:44} {median(turns):7.1f} ms per step, at its quietest {quiet(turns):7.1f}  {BATCH / quiet(turns) * 1e3:6.0f} instances/s")
    for name, turns in times.items():
        line(f"PyTorch {torch.__version__} {name}", turns)
    for p, turns in ours.items():
        line(f"Haul {turns[0]['device']}, {p}", turns)
    for p in ours:
        print(f"Haul in {p}: ratio to PyTorch's fastest {ratio[p][median]:.2f} ({best[median]}), at the quietest {ratio[p][quiet]:.2f} ({best[quiet]}); "
              f"up to {100 * share[p]:.0f} % of the peak of what multiplies")


if __name__ == "__main__":
    needs.run(main)
