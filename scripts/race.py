"""Races Haul's training step against the same model in PyTorch, on the same cores, in one run.

  python scripts/race.py --haul bin/haul [--threads 2] [--rounds 5]      # needs torch (CPU, MKL)

Both sides draw instances, encode, sample, run the greedy baseline, score, go backward, clip and update: N = 10, batch 128, rollout
baseline, fp32. They take turns, a few seconds each; a side's figure is the median of its turns' medians, and beside it stands the
fastest tenth of its quietest turn: where the two ratios differ, something else had the cores. PyTorch runs eagerly and
compiled where its compiler works, and its fastest mode counts.
"""

import argparse
import json
import statistics
import subprocess
import time

import torch

import gt_torch as gt

N, BATCH, CAPACITY, WIDTH, LAYERS, HEADS = 10, 128, 30, 128, 3, 4


class Step:
    """The training step an expert would write."""

    def __init__(self, compiled):
        torch.manual_seed(1)
        self.policy, self.frozen = gt.GT(WIDTH, LAYERS, HEADS), gt.GT(WIDTH, LAYERS, HEADS)
        self.frozen.load_state_dict(self.policy.state_dict())
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)
        if compiled:
            for m in (self.policy, self.frozen):
                m.encode, m.logits = torch.compile(m.encode), torch.compile(m.logits, dynamic=True)

    def __call__(self):
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
        loss = ((routes.cost - base) * logp.sum(2)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 2.0)
        self.optimizer.step()

    def turn(self, seconds):
        took, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(took) < 3:
            start = time.perf_counter()
            self()
            took.append(time.perf_counter() - start)
        took.sort()
        return {"ms_per_step": 1e3 * statistics.median(took), "ms_p10": 1e3 * took[len(took) // 10]}


def haul_turn(args, seconds, guess):
    rounds = max(11, int(1e3 * seconds / guess))
    line = subprocess.run([args.haul, "bench", "step", "--config", "tiny_1", "--device", "cpu", "--workers", str(args.threads), "--rounds", str(rounds), "--json"],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(line)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--haul", default="haul")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--seconds", type=float, default=4, help="of a turn")
    ap.add_argument("--json", action="store_true")
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    modes = {"eager": Step(False)}
    modes["eager"].turn(1)
    try:
        compiled = Step(True)
        compiled.turn(1)
        modes["compiled"] = compiled
    except Exception as e:  # no C++ compiler, or a graph it cannot take
        print(f"torch.compile does not work here: {str(e).splitlines()[0]}")
    times, ours = {m: [] for m in modes}, []
    for _ in range(a.rounds):
        for name, step in modes.items():
            times[name].append(step.turn(a.seconds))
        ours.append(haul_turn(a, a.seconds, ours[-1]["ms_per_step"] if ours else 50))
    median = lambda turns: statistics.median(t["ms_per_step"] for t in turns)
    quiet = lambda turns: min(t["ms_p10"] for t in turns)
    best = {f: min(times, key=lambda m: f(times[m])) for f in (median, quiet)}
    ratio = {f: f(times[best[f]]) / f(ours) for f in best}
    share = max(o["share_of_peak"] for o in ours)
    if a.json:
        print(json.dumps({"torch": torch.__version__, "threads": a.threads, "torch_ms": {m: median(t) for m, t in times.items()},
                          "torch_ms_quiet": {m: quiet(t) for m, t in times.items()}, "haul_ms": median(ours), "haul_ms_quiet": quiet(ours),
                          "haul_device": ours[0]["device"], "haul_share_of_peak": share, "ratio": ratio[median], "ratio_quiet": ratio[quiet]}))
        return
    line = lambda who, turns: print(f"{who:36} {median(turns):7.1f} ms a step, at its quietest {quiet(turns):7.1f}  {BATCH / quiet(turns) * 1e3:6.0f} instances/s")
    for name, turns in times.items():
        line(f"PyTorch {torch.__version__} {name}", turns)
    line(f"Haul {ours[0]['device']}", ours)
    print(f"Haul's share of the multiply-add peak: up to {100 * share:.0f} %")
    print(f"ratio to PyTorch's fastest: {ratio[median]:.2f} ({best[median]}), at the quietest {ratio[quiet]:.2f} ({best[quiet]})")


if __name__ == "__main__":
    main()
