"""Schemathesis against a server: every check that it has, on every operation but the two streams that have no end.

  scripts/api-check fuzz [CASES]        # builds, starts a server, runs this

The description is the server's own. A request that asks for a long search or many instances, as it may, is sent with 0.1 s or 10 in
their place, so that thousands of cases end; what the description forbids is sent as it is. Schemathesis
takes a refusal of data that fits the schema for a fault; 422 is no fault here, because no schema says that two lists must be of
one length or that a demand must fit a vehicle. VROOM's path says 400 for the same, as vroom-express does. What does not fit the schema must be refused, and nothing may be answered with 5xx.
"""

import json
import os
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

[[operations]]
include-operation-id = "optimize"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "400"]
"""
HOOKS = """
import schemathesis

@schemathesis.hook
def before_call(ctx, case, kwargs):
    body, name = case.body, case.operation.definition.raw.get("operationId")
    if not isinstance(body, dict):
        return
    number = lambda key: isinstance(body.get(key), (int, float)) and not isinstance(body.get(key), bool)
    if name == "evaluate" and ("count" not in body or number("count") and 10 < body["count"] <= 1000):
        body["count"] = 10
    if name in ("solve", "submitJob") and ("time" not in body or number("time") and 0.1 < body["time"] <= 3600):
        body["time"] = 0.1
"""
STREAMS = ["followRuns", "followJob"]


def main():
    doc = json.load(urllib.request.urlopen(FLAGS.url + "/api/v1/openapi.json"))
    operations = sum(len(path) for path in doc["paths"].values()) - len(STREAMS)
    with tempfile.TemporaryDirectory() as folder:
        schema, config = pathlib.Path(folder) / "openapi.json", pathlib.Path(folder) / "schemathesis.toml"
        schema.write_text(json.dumps(doc))
        config.write_text(CONFIG)
        (pathlib.Path(folder) / "api_hooks.py").write_text(HOOKS)
        environ = {**os.environ, "SCHEMATHESIS_HOOKS": "api_hooks", "PYTHONPATH": folder}
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(schema), "--url", FLAGS.url, "--seed", str(FLAGS.seed)]
        command += ["--max-examples", str(max(1, FLAGS.cases // operations)), "--request-timeout", "60", "--suppress-health-check", "all", "--no-color"]
        command += [word for name in STREAMS for word in ("--exclude-operation-id", name)]
        text = ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as done:
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
