"""Schemathesis against a server: every check that it has, on every operation but the two streams that have no end.

  scripts/api-check fuzz [CASES]        # builds, starts a server, runs this

The description is the server's own, with two changes: a search is given at most 0.2 s and an evaluation 10 instances, so that
thousands of cases end. Schemathesis
takes a refusal of data that fits the schema for a fault; 422 is no fault here, because no schema says that two lists must be of
one length or that a demand must fit a vehicle. VROOM's path says 400 for the same, as vroom-express does. What does not fit the schema must be refused, and nothing may be answered with 5xx.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

import needs

ap = needs.flags(__doc__)
ap.add_argument("url", help="of the server")
ap.add_argument("--cases", type=int, default=2000, help="at least so many")
ap.add_argument("--seed", type=int, default=1)
FLAGS = ap.parse_args()
needs.packages("schemathesis")

CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "302", "401", "403", "404", "409", "422"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "413", "415", "422"]

[[operations]]
include-operation-id = "vroom"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "400"]
"""
STREAMS = ["followRuns", "followJob"]


def main():
    doc = json.load(urllib.request.urlopen(FLAGS.url + "/api/v1/openapi.json"))
    doc["components"]["schemas"]["Solve"]["properties"]["time"].update(maximum=0.2, minimum=0.01, default=0.1)
    doc["components"]["schemas"]["Evaluate"]["properties"]["count"].update(maximum=10, default=10)
    operations = sum(len(path) for path in doc["paths"].values()) - len(STREAMS)
    with tempfile.TemporaryDirectory() as folder:
        schema, config = pathlib.Path(folder) / "openapi.json", pathlib.Path(folder) / "schemathesis.toml"
        schema.write_text(json.dumps(doc))
        config.write_text(CONFIG)
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(schema), "--url", FLAGS.url, "--seed", str(FLAGS.seed)]
        command += ["--max-examples", str(max(1, FLAGS.cases // operations)), "--request-timeout", "30", "--suppress-health-check", "all", "--no-color"]
        command += [word for name in STREAMS for word in ("--exclude-operation-id", name)]
        text = ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as done:
            for line in done.stdout:
                print(line, end="", flush=True)
                text += line
    made = re.search(r"(\d+) generated", text)
    if done.returncode != 0:
        sys.exit("schemathesis found something")
    if not made or int(made[1]) < FLAGS.cases:
        sys.exit(f"{made and made[1]} cases were made, fewer than {FLAGS.cases}")


if __name__ == "__main__":
    needs.run(main)
