package eval_test

import (
	"strings"
	"testing"

	"haul/cmd/haul/clitest/inprocess"
)

// TestActiveSearchSurfaces: haul solve and haul eval take eas by iterations and by time, in which
// no search follows.
func TestActiveSearchSurfaces(t *testing.T) {
	const file = "../../../docs/examples/grid20.vrp"
	solved := func(more ...string) map[string]any {
		return inprocess.Object(t, append([]string{"solve", file, "--policy", "cvrp20", "--set", "device=cpu", "--json", "--seed", "1"}, more...)...)
	}
	first := solved("--set", "decode=pomo:1")["cost"].(float64)
	for _, c := range []struct{ args, decode, method string }{{"--set decode=eas:2", "eas:2", "policy"}, {"--set decode=eas --time 1ms", "eas", "policy"}} {
		r := solved(strings.Fields(c.args)...)
		if r["decode"] != c.decode || r["method"] != c.method || r["cost"].(float64) > first {
			t.Errorf("%s: %v; the first routes cost %g", c.args, r, first)
		}
	}
	kool := []string{"eval", "kool", "--policy", "cvrp20", "--device", "cpu", "--count", "2", "--json"}
	plain, found := inprocess.Object(t, append(kool, "--decode", "pomo:1")...), inprocess.Object(t, append(kool, "--decode", "eas:2")...)
	if found["mean_cost"].(float64) > plain["mean_cost"].(float64) || found["routes_per_instance"] != 60.0 || found["valid"] != true {
		t.Errorf("%v, and pomo:1 %v", found, plain)
	}
	if timed := inprocess.Object(t, append(kool, "--decode", "eas", "--time", "1ms")...); timed["mean_cost"].(float64) > plain["mean_cost"].(float64) || timed["routes_per_instance"] != nil {
		t.Errorf("by time %v, and pomo:1 %v", timed, plain)
	}
}

// TestTheChosenPolicyIsNamed: auto says which policy it took, as a report and as JSON.
func TestTheChosenPolicyIsNamed(t *testing.T) {
	args := []string{"solve", "../../../docs/examples/grid20.vrp", "--policy", "auto", "--set", "device=cpu", "--set", "decode=greedy"}
	if r := inprocess.Object(t, append(args, "--json")...); r["policy"] != "cvrp20" {
		t.Errorf("%v", r)
	}
	if r := inprocess.Run(t, args...); r.Code != 0 || !strings.Contains(r.Stdout, "policy (cvrp20, greedy)") {
		t.Errorf("%+v", r)
	}
}
