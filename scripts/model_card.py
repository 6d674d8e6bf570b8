"""Writes the model card of a policy: what it learned from, its curve, how it fares, and the commands behind all of it.

  python scripts/model_card.py cvrp100 runs/cvrp100 results.jsonl [--haul bin/haul] [--note TEXT] > policies/cvrp100.md

runs/cvrp100 is the run that the policy was packed from, results.jsonl the lines of `haul eval --policy cvrp100 ... --json`, one per test set and
decoder. --began runs/first names the run whose weights it began with (`haul train --from`), if any; its instances, minutes and command are
told too. Only Python's own library is needed.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess


def thousands(n):
    return f"{int(n):,}"


# What a run of before a key was has in its place.
DEFAULTS = {"pointer_distance": 0, "leader_weight": 0}


def changed(run, settings):
    """The flags by which the run differed from the shipped settings in what is usually changed."""
    text = (run / "config.yaml").read_text()
    flags = ""
    for section, key, flag in (
        ("model", "pointer_distance", "--set model.pointer_distance={}"),
        ("training", "num_epochs", "--epochs {}"),
        ("training", "learning_rate", "--set training.learning_rate={}"),
        ("training", "batch_size", "--set training.batch_size={}"),
        ("training_advanced", "decay_share", "--set training_advanced.decay_share={}"),
        ("training_advanced", "warmup_steps", "--set training_advanced.warmup_steps={}"),
        ("baseline", "preference_alpha", "--set baseline.preference_alpha={}"),
        ("baseline", "leader_weight", "--set baseline.leader_weight={}"),
    ):
        m = re.search(rf"^\s+{key}:\s*(\S+)", text, re.M)
        value = float(m[1]) if m else DEFAULTS.get(key)
        if value is not None and value != settings[section][key]:
            flags += " " + flag.format(m[1] if m else value)
    return flags


def history(run):
    with open(run / "csv" / "history_gt_rl.csv") as f:
        return list(csv.DictReader(f))


def spent(run):
    """Instances and minutes of training."""
    rows = history(run)
    return sum(int(r["instances"] or 0) for r in rows), sum(float(r["time_per_epoch"] or 0) for r in rows) / 60


def command(name, run, settings, more=""):
    return f"haul train --config {name} --device cuda:0{changed(run, settings)}{more} \\\n  --out runs/{name}"


def curve(run, customers):
    """Rows of about ten validations: minutes of training, instances, mean cost of an instance."""
    seconds, instances, points = 0.0, 0, []
    for r in history(run):
        seconds += float(r["time_per_epoch"] or 0)
        instances += int(r["instances"] or 0)
        if r["val_cost_arithmetic"]:  # per customer
            points.append((seconds / 60, instances, customers * float(r["val_cost_arithmetic"])))
    keep = max(1, len(points) // 10)
    return points[::keep] + ([points[-1]] if (len(points) - 1) % keep else [])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("name")
    ap.add_argument("run", type=pathlib.Path)
    ap.add_argument("results", type=pathlib.Path)
    ap.add_argument("--haul", default="haul")
    ap.add_argument("--note", default="")
    ap.add_argument("--began", type=pathlib.Path)
    a = ap.parse_args()
    p = json.loads(subprocess.run([a.haul, "policies", a.name, "--json"], check=True, capture_output=True, text=True).stdout)
    settings = json.loads(subprocess.run([a.haul, "config", "show", "--config", a.name, "--json"], check=True, capture_output=True, text=True).stdout)
    n = p["customers"]
    results = [json.loads(line) for line in a.results.read_text().splitlines() if line.startswith("{")]
    sets = list(dict.fromkeys(r["instances_from"] for r in results))
    results.sort(key=lambda r: sets.index(r["instances_from"]))

    print(f"# {a.name}\n")
    print(f"A routing policy for about {n} customers: {p['layers']} layers of width {p['width']}, {thousands(p['parameters'])} parameters in bf16,")
    print(f"{p['bytes'] / 1e6:.1f} MB. `haul solve FILE.vrp --policy {a.name}` uses it." + (f" {a.note}" if a.note else "") + "\n")
    print("## Data\n")
    print(f"Instances of Kool's distribution, drawn as they are needed and never twice: {n} customers and the\ndepot uniform in the unit square, demands 1 to 9, capacity {p['capacity']}.\n")
    print("## Budget\n")
    print(f"{thousands(p['instances'])} instances in {thousands(p['updates'])} updates, {p['train_seconds'] / 60:.1f} minutes with validation, on one NVIDIA H200" + (":" if a.began else ".") + ("" if a.began else "\n"))
    if a.began:
        instances, minutes = spent(a.began)
        print(f"a run that began with the weights of another, of {thousands(instances)} instances and {minutes:.1f} minutes.\n")
    print("## Curve\n")
    decode = settings["training"].get("validation_decode", "greedy")
    print(f"Validation instances by `--decode {decode}`{', in the second run' if a.began else ''}:\n")
    print("| minutes of training | instances | mean cost |\n| --- | --- | --- |")
    for minutes, instances, cost in curve(a.run, n):
        print(f"| {minutes:.1f} | {thousands(instances)} | {cost:.4f} |")
    print("\n## Results\n")
    print("Each route was judged by the validator. Gaps are means of the instances' own, ± their standard\nerror; where a public set has no costs per instance, the gap of the means to HGS's published one.\nTimes are upper bounds: several evaluations shared the device, and the first loads its kernels.\n")
    devices = list(dict.fromkeys(r["device"] for r in results))
    print("| instances | decoder | mean cost | gap | ms per instance | on |\n| --- | --- | --- | --- | --- | --- |")
    for r in results:
        gap = ""
        if "mean_gap" in r:
            gap = f"{100 * r['mean_gap']:+.2f} ± {100 * r['se_gap']:.2f} % to {r['gap_to']}"
        elif "published_gap" in r:
            gap = f"{100 * r['published_gap']:+.2f} % to {r['published_cost']:.3f}"
        where = pathlib.Path(r["instances_from"]).name
        where = {"x": "CVRPLIB X, up to 250 customers"}.get(where, where)
        print(f"| {thousands(r['instances'])} of {where} | `{r['decode']}` | {r['mean_cost']:.4f} | {gap} | {1000 * r['seconds_per_instance']:.3g} | {r['device'].split(' ')[0]} |")
    print(f"\nOn {' and '.join(devices)}. For example:\n")
    print(f"```sh yours\nhaul eval --policy {a.name} --testset kool --decode pomo8\n```\n")
    print("## Made by\n")
    commands = command(a.name, a.run, settings)
    if a.began:
        commands = command(a.name, a.began, settings) + "\n" + command(a.name, a.run, settings, f" --seed 2 --from runs/{a.name}").replace(f"--out runs/{a.name}", f"--out runs/{a.name}-2")
    print(f"```sh yours\n{commands}\nhaul policies pack runs/{a.name}{'-2' if a.began else ''}/last.safetensors --out policies/{a.name}.safetensors\n```\n")
    print("The run was made in pieces, by `scripts/train-policies`.")


if __name__ == "__main__":
    main()
