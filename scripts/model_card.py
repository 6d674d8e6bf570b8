"""Writes the model card of a policy: what it learned from, its curve, how it fares, and the commands behind all of it.

  python scripts/model_card.py cvrp100 runs/cvrp100 results.jsonl > policies/cvrp100.md

runs/cvrp100 is the run that the policy was packed from, results.jsonl the lines of `haul eval --policy cvrp100 ... --json`, one per test set and
decoder. --began runs/first names the run whose weights it began with (`haul train --from`), if any, and may be given again for a chain of them,
the first first; their instances, minutes and commands are told too. Only Python's own library is needed.
"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import textwrap

import needs


def thousands(n):
    return f"{int(n):,}"


def milliseconds(x):
    """Three digits, and never a power of ten."""
    return f"{x:.3g}" if x < 999.5 else f"{x:.0f}"


# What a run of before a key was has in its place.
DEFAULTS = {"pointer_distance": 0, "pointer_pairs": False, "start_views": False, "optimizer": "adamw", "leader_weight": 0, "leader_alone": False, "leader_margin": 0, "symmetries": 1}
WORDS = {"true": True, "false": False}


def read(word):
    """A value as settings write it: true, 0.2 or "muon"."""
    if word in WORDS:
        return WORDS[word]
    try:
        return float(word)
    except ValueError:
        return word.strip('"')


def changed(run, settings):
    """The flags by which the run differed from the shipped settings in what is usually changed."""
    text = (run / "config.yaml").read_text()
    flags = ""
    for section, key, flag in (
        ("model", "num_layers", "--set model.num_layers={}"),
        ("model", "pointer_distance", "--set model.pointer_distance={}"),
        ("model", "pointer_pairs", "--set model.pointer_pairs={}"),
        ("model", "start_views", "--set model.start_views={}"),
        ("training", "num_epochs", "--epochs {}"),
        ("training", "learning_rate", "--set training.learning_rate={}"),
        ("training", "batch_size", "--set training.batch_size={}"),
        ("training_advanced", "optimizer", "--set training_advanced.optimizer={}"),
        ("training_advanced", "decay_share", "--set training_advanced.decay_share={}"),
        ("training_advanced", "warmup_steps", "--set training_advanced.warmup_steps={}"),
        ("baseline", "preference_alpha", "--set baseline.preference_alpha={}"),
        ("baseline", "leader_weight", "--set baseline.leader_weight={}"),
        ("baseline", "leader_alone", "--set baseline.leader_alone={}"),
        ("baseline", "leader_margin", "--set baseline.leader_margin={}"),
        ("baseline", "symmetries", "--set baseline.symmetries={}"),
    ):
        m = re.search(rf"^\s+{key}:\s*(\S+)", text, re.M)
        value = read(m[1]) if m else DEFAULTS.get(key)
        if value is not None and value != settings[section][key]:
            flags += " " + flag.format(m[1].strip('"') if m else str(value).lower())
    return flags


def history(run):
    with open(run / "csv" / "history_gt_rl.csv") as f:
        return list(csv.DictReader(f))


def spent(run):
    """Instances, minutes of training, and minutes at the pace of the fastest tenth of its epochs: what it takes with the card to itself."""
    rows = history(run)
    took = sorted(float(r["time_per_epoch"] or 0) for r in rows)
    return sum(int(r["instances"] or 0) for r in rows), sum(took) / 60, took[len(took) // 10] * len(took) / 60


def seed(run):
    return re.search(r"^\s+random_seed:\s*(\d+)", (run / "config.yaml").read_text(), re.M)[1]


def symmetries(run):
    """Under how many symmetries of the square the run saw each instance. Its count of instances has each of them."""
    m = re.search(r"^\s+symmetries:\s*(\d+)", (run / "config.yaml").read_text(), re.M)
    return int(m[1]) if m else DEFAULTS["symmetries"]


def drawn(run):
    """Whether the policy is at its best with drawn routes, as one whose starts are viewed is."""
    m = re.search(r"^\s+start_views:\s*(\S+)", (run / "config.yaml").read_text(), re.M)
    return read(m[1]) if m else DEFAULTS["start_views"]


def repeats(runs):
    """Whether an instance was seen twice: runs of one seed draw the same ones in the same order."""
    seen, again = {}, 0
    for run in runs:
        instances = spent(run)[0] // symmetries(run)
        again += min(instances, seen.get(seed(run), 0))
        seen[seed(run)] = max(instances, seen.get(seed(run), 0))
    turned = [str(k + 1) for k, run in enumerate(runs) if symmetries(run) > 1]
    twice = "drawn twice" if turned else "used twice"
    text = f"Runs of one seed draw the same ones: {again / 1e6:.1f} million were {twice}." if again else f"No instance was {twice}."
    if turned:
        every = "" if len(turned) == len(runs) else f" in run{'s' if len(turned) > 1 else ''} {' and '.join(turned)}"
        text += f" Each was seen{every} under the eight symmetries of the square, and counts as eight."
    return text


def fill(text):
    return textwrap.fill(text, 98, break_long_words=False, break_on_hyphens=False)


def command(name, run, settings, more, folder):
    """The command of a run, broken between flags, and where it was stopped."""
    line = f"haul train --config {name} --device cuda:0{changed(run, settings)}{more} --out {folder}"
    line = re.sub(r"(--\S+) (?=[^-])", "\\1\0", line)  # a flag stays beside its value
    line = textwrap.fill(line, 96, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    planned, made = int(re.search(r"^\s+num_epochs:\s*(\d+)", (run / "config.yaml").read_text(), re.M)[1]), len(history(run))
    return line.replace("\n", " \\\n").replace("\0", " ") + (f"   # stopped after {made} epochs" if made < planned else "")


def curve(runs, customers):
    """Rows of about a dozen validations: minutes of training in all, instances, mean cost of an instance, gap to the search."""
    seconds, instances, points = 0.0, 0, []
    for run in runs:
        for r in history(run):
            seconds += float(r["time_per_epoch"] or 0)
            instances += int(r["instances"] or 0)
            if r["val_cost_arithmetic"]:  # per customer
                points.append((seconds / 60, instances, customers * float(r["val_cost_arithmetic"]), float(r["val_gap"] or "nan")))
    keep = max(1, len(points) // 12)
    return points[::keep] + ([points[-1]] if (len(points) - 1) % keep else [])


def main():
    ap = needs.flags(__doc__)
    ap.add_argument("name", help="of a policy that comes with the program, and of its settings")
    ap.add_argument("run", type=pathlib.Path, help="the folder of the run that it was packed from")
    ap.add_argument("results", type=pathlib.Path, help="lines of haul eval --json")
    ap.add_argument("--haul", default="haul", help="the program, with the policy in it")
    ap.add_argument("--note", default="", help="a sentence for the card's first paragraph")
    ap.add_argument("--began", type=pathlib.Path, action="append", default=[], help="a run before, the first first")
    ap.add_argument("--pieces", action="store_true", help="the runs were resumed, with a longer plan than they began with where there are several")
    a = ap.parse_args()
    a.haul = needs.program(a.haul)
    p = json.loads(subprocess.run([a.haul, "policies", a.name, "--json"], check=True, capture_output=True, text=True).stdout)
    settings = json.loads(subprocess.run([a.haul, "config", "show", "--config", a.name, "--json"], check=True, capture_output=True, text=True).stdout)
    n = p["customers"]
    results = [json.loads(line) for line in a.results.read_text().splitlines() if line.startswith("{")]
    sets = list(dict.fromkeys(r["instances_from"] for r in results))
    results.sort(key=lambda r: sets.index(r["instances_from"]))

    runs = a.began + [a.run]
    each = [spent(r) for r in runs]
    total = [sum(column) for column in zip(*each)]
    if p["instances"] != total[0]:
        named = "".join(f" --began {r}" for r in a.began)
        sys.exit(f"model_card.py: the policy says that it learned from {thousands(p['instances'])} instances, its runs have {thousands(total[0])}: "
                 f"name the runs before with --began, or pack it as haul policies pack {a.run}/last.safetensors{named} --out policies/{a.name}.safetensors --force")
    print(f"# {a.name}\n")
    print(f"A routing policy for about {n} customers: {p['layers']} layers of width {p['width']}, {thousands(p['parameters'])} parameters in bf16,")
    print(f"{p['bytes'] / 1e6:.1f} MB. `haul solve FILE.vrp --policy {a.name}` uses it." + (f" {a.note}" if a.note else "") + "\n")
    print("## Data\n")
    print(fill(f"Instances of Kool's distribution, drawn during training: {n} customers and the depot uniform in the unit square, demands 1 to 9, "
               f"capacity {p['capacity']}. {repeats(runs)}") + "\n")
    print("## Budget\n")
    text = f"{thousands(total[0])} instances on one NVIDIA H200, {total[1]:.1f} minutes of wall time"
    if total[1] > 1.05 * total[2]:
        text += f", part of which other programs used the GPU too, and {total[2]:.1f} at the pace of the fastest epochs"
    if a.began:
        parts = [f"{i / 1e6:.1f} million in {m:.1f} minutes" for i, m, _ in each]
        text += f": {len(runs)} runs of {', '.join(parts[:-1])} and {parts[-1]}, each started with the weights of the one before"
    print(fill(text + "."))
    print("\n## Curve\n")
    decode = settings["training"].get("validation_decode", "greedy") + (":1" if all(map(drawn, runs)) else "")
    other = "; later runs had other instances, so compare gaps, not costs" if a.began else ""
    print(fill(f"Validation instances by `--decode {decode}`, and their gap to Haul's search{other}:") + "\n")
    print("| minutes of training | instances | mean cost | gap |\n| --- | --- | --- | --- |")
    for minutes, instances, cost, gap in curve(runs, n):
        print(f"| {minutes:.1f} | {thousands(instances)} | {cost:.4f} | {100 * gap:.2f} % |")
    print("\n## Results\n")
    print(fill("The validator checked each route. Gaps are means over instances, ± their standard error; for a public set without a cost per instance, the gap between the means to HGS's published one. Times are of whole evaluations, including the loading of a GPU's kernels.") + "\n")
    devices = list(dict.fromkeys(r["device"] for r in results))
    print("| instances | decoder | mean cost | gap | ms per instance | on |\n| --- | --- | --- | --- | --- | --- |")
    for r in results:
        gap = ""
        if "mean_gap" in r:
            gap = f"{100 * r['mean_gap']:+.2f} ± {100 * r['se_gap']:.2f} % to {r['gap_to']}"
        elif "published_gap" in r:
            gap = f"{100 * r['published_gap']:+.2f} % to {r['published_cost']:.3f}"
        where = pathlib.Path(r["instances_from"]).name
        if where == "x":
            where = "CVRPLIB X, up to 250 customers" if r["instances"] == 16 else "CVRPLIB X"
        print(f"| {thousands(r['instances'])} of {where} | `{r['decode']}` | {r['mean_cost']:.4f} | {gap} | {milliseconds(1000 * r['seconds_per_instance'])} | {r['device'].split(' ')[0]} |")
    print(f"\nOn {' and '.join(devices)}. For example:\n")
    print(f"```sh yours\nhaul eval kool --policy {a.name} --decode pomo8{':1' if drawn(a.run) else ''}\n```\n")
    print("## Made by\n")
    commands, folder = [], f"runs/{a.name}"
    for k, run in enumerate(runs):
        more = f" --seed {seed(run)}" if seed(run) != str(settings["experiment"]["random_seed"]) else ""
        more += f" --from {folder}/last.safetensors" if k else ""
        folder = f"runs/{a.name}" + (f"-{k + 1}" if k else "")
        commands.append(command(a.name, run, settings, more, folder))
    commands.append(f"haul policies pack {folder}/last.safetensors --out policies/{a.name}.safetensors && zstd --rm -19 policies/{a.name}.safetensors")
    print("```sh yours\n" + "\n".join(commands) + "\n```")
    if a.pieces:
        print("\nThe runs were made in pieces" + (", each resumed with a longer plan than it began with" if a.began else "") + ".")


if __name__ == "__main__":
    needs.run(main)
