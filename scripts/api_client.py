"""A client that openapi-python-client made of the server's own openapi.json, on every path that it describes.

  scripts/api-check client        # builds, starts a server, makes the client, runs this

Each operation is called once with what a user would send; its answer must be of the type that the description promises, and the
operations that were called must be all that there are. Exit code 1 where one is not.
"""

import importlib
import json
import pathlib
import pkgutil
import sys

import needs

ap = needs.flags(__doc__)
ap.add_argument("client", help="folder of the generated package haul_client")
ap.add_argument("url", help="of the server, which has a run that has ended")
FLAGS = ap.parse_args()
sys.path.insert(0, FLAGS.client)
needs.packages("httpx", "attrs")

import haul_client.api
from haul_client import Client
from haul_client import models as m
from haul_client.api.doctor import diagnose, get_doctor_page
from haul_client.api.jobs import cancel_job, delete_job, follow_job, get_job, list_jobs, submit_job
from haul_client.api.policies import evaluate, list_policies
from haul_client.api.routes import draw_instance, export_routes, optimize, read_instance, solve, solve_batch, vroom
from haul_client.api.runs import follow_runs, get_picture, get_run, list_runs, measure_step, start_run, stop_run
from haul_client.api.server import get_about, get_health, get_metrics, get_open_api, get_page, get_readiness
from haul_client.types import File

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "docs/examples"
client = Client(base_url=FLAGS.url, raise_on_unexpected_status=True, timeout=120)
called = set()


def call(module, kind, *args, status=200, **kwargs):
    """Calls an operation and holds its answer to its type."""
    called.add(module.__name__)
    got = module.sync_detailed(*args, client=client, **kwargs)
    if got.status_code != status or not isinstance(got.parsed, kind):
        sys.exit(f"{module.__name__}: {got.status_code} {got.content[:200]!r}, a {type(got.parsed).__name__}; expected {status} and {kind.__name__}")
    return got.parsed


def events(module, *args, until):
    """The names of a stream's events up to one; the generated function would wait for the stream's end."""
    called.add(module.__name__)
    names = []
    with client.get_httpx_client().stream(**module._get_kwargs(*args)) as stream:
        if stream.status_code != 200 or not stream.headers["content-type"].startswith("text/event-stream"):
            sys.exit(f"{module.__name__}: {stream.status_code} {stream.headers}")
        for line in stream.iter_lines():
            if line.startswith("event: "):
                names.append(line[7:])
            if line.startswith("data: ") and until(names[-1], json.loads(line[6:])):
                return names
    sys.exit(f"{module.__name__}: the stream ended after {names}")


def main():
    called.add(get_page.__name__)
    if (page := get_page.sync_detailed(client=client)).status_code != 302:
        sys.exit(f"get_page: {page.status_code}")
    call(get_health, str)
    call(get_readiness, str)
    call(get_metrics, str)
    call(get_open_api, m.GetOpenApiResponse200)
    call(get_about, m.About)
    drawn = call(draw_instance, m.Instance, customers=12, seed=3)
    problem = drawn.to_dict()
    ask = m.Solve.from_dict({**problem, "method": "search", "time": 0.2})
    found = call(solve, m.Solution, body=ask)
    call(solve_batch, m.BatchAnswers, body=m.Batch(problems=[ask]))
    for fmt in m.ExportRoutesFormat:
        text = call(export_routes, str, fmt, body=m.Export.from_dict({**problem, **found.to_dict()}))
        if not text:
            sys.exit(f"export {fmt}: nothing")
    with open(EXAMPLES / "stops.csv", "rb") as f:
        call(read_instance, m.Instance, body=File(payload=f), name="stops.csv", capacity=100)
    job = call(submit_job, m.Job, body=ask, idempotency_key="one", status=202)
    again = call(submit_job, m.Job, body=ask, idempotency_key="one", status=200)
    if again.id != job.id:
        sys.exit("the same key is another job")
    events(follow_job, job.id, until=lambda name, data: name == "job" and data["state"] == "done")
    if call(get_job, m.Job, job.id).result.cost <= 0:
        sys.exit("a job without a cost")
    call(list_jobs, m.Jobs)
    call(cancel_job, m.Job, job.id)
    called.add(delete_job.__name__)
    if (got := delete_job.sync_detailed(job.id, client=client)).status_code != 204:
        sys.exit(f"delete_job: {got.status_code}")
    call(list_policies, m.Policies)
    call(evaluate, m.Evaluation, body=m.Evaluate(policy="cvrp20", count=4, customers=10))
    name = call(list_runs, m.Runs).runs[0].name
    run = call(get_run, m.RunDetails, name)
    call(get_picture, File, name, run.pictures[0])
    call(measure_step, m.Ledger, name)
    call(start_run, m.Problem, body=m.Train(config="quick"), status=403)  # this server starts none; cmd/haul/e2e starts one
    call(stop_run, m.Problem, name, status=409)
    events(follow_runs, until=lambda event, _: event == "hello")
    with open(EXAMPLES / "trace.json.gz", "rb") as f:
        diagnosis = call(diagnose, m.Diagnosis, body=File(payload=f), name="trace.json.gz")
    call(get_doctor_page, str, diagnosis.page.rsplit("/", 1)[1])
    plan = {"vehicles": [{"id": 7, "start": [2.35, 48.86], "end": [2.35, 48.86]}], "jobs": [{"id": 1, "location": [2.3, 48.9]}], "options": {"l": 0.1}}
    call(vroom, m.VroomOutput, body=m.VroomInput.from_dict(plan))
    call(optimize, m.VroomOutput, body=m.VroomInput.from_dict(plan))
    made = {f"haul_client.api.{p.name}.{o.name}" for p in pkgutil.iter_modules(haul_client.api.__path__) for o in pkgutil.iter_modules(importlib.import_module(f"haul_client.api.{p.name}").__path__)}
    if made != called:
        sys.exit(f"not called: {sorted(made - called)}")
    print(f"{len(called)} operations of the generated client were called, and every answer is of its type")


if __name__ == "__main__":
    needs.run(main)
