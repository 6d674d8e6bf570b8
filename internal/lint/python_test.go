package lint

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlacesOfSeveralDepots: the Python package numbers the clients of a plan from 0, behind all
// depots, and shipments behind the clients.
func TestPlacesOfSeveralDepots(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	const program = `
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_plan", sys.argv[1])
plan = sys.modules["_plan"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plan)
stop = dict.fromkeys(("arrival", "wait", "begin", "service", "depart", "distance"), 0.0)
kinds = [("start", 1), ("customer", 3), ("reload", 2), ("customer", 4), ("customer", 5), ("customer", 6), ("end", 0)]
stops = [dict(stop, kind=kind, place=place, id=str(place)) for kind, place in kinds]
route = dict(dict.fromkeys(("distance", "duration", "wait", "start", "end"), 0.0), vehicle="v", type=0, cost=0, stops=stops)
got = plan.plan_of(0.0, 0, dict(routes=[route], unserved=[], distance=0, duration=0), depots=3, shipments=5)
print(" ".join(f"{s} {s.trip}" for s in got.all[0].stops))
`
	out, err := exec.Command(python, "-S", "-E", "-B", "-c", program, filepath.Join(root, "python", "haul", "_plan.py")).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "D1 0 C0 0 D2 1 C1 1 L0 1 U0 1 D0 1" {
		t.Errorf("%v: %s", err, got)
	}
}
