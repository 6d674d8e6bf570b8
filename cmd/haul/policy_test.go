package main

import (
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/policy"
)

// TestSlowDecodersAreTold: what is chosen where nobody says how is not slow up to 2,000 customers,
// and what takes longer is.
func TestSlowDecodersAreTold(t *testing.T) {
	var f policyFlags
	for _, n := range []int{1, 20, policy.MostForPomo8, policy.MostForPomo8 + 1, policy.MostForPomo, policy.MostForPomo + 1, 2000} {
		if d, _, err := f.decoder(&config.Config{}, n, false); err != nil || slow(d, n) {
			t.Errorf("%d customers by %s: slow, %v", n, d, err)
		}
	}
	for name, n := range map[string]int{"pomo8": policy.MostForPomo8 + 1, "pomo8:1": policy.MostForPomo, "pomo": policy.MostForPomo + 1, "sgbs8": 100, "eas8": 50, "sample:65536": 100, "greedy": 5000} {
		if d, err := policy.ParseDecode(name); err != nil || !slow(d, n) {
			t.Errorf("%d customers by %s: not slow, %v", n, name, err)
		}
	}
}

// TestActiveSearchSurfaces: haul solve and haul eval take eas by iterations and by time, in which
// no search follows.
func TestActiveSearchSurfaces(t *testing.T) {
	const file = "../../docs/examples/grid20.vrp"
	solved := func(more ...string) map[string]any {
		return object(t, append([]string{"solve", file, "--policy", "cvrp20", "--device", "cpu", "--json", "--seed", "1"}, more...)...)
	}
	first := solved("--decode", "pomo:1")["cost"].(float64)
	for _, c := range []struct{ args, decode, method string }{{"--decode eas:2", "eas:2", "policy"}, {"--decode eas --time 1ms", "eas", "policy"}} {
		r := solved(strings.Fields(c.args)...)
		if r["decode"] != c.decode || r["method"] != c.method || r["cost"].(float64) > first {
			t.Errorf("%s: %v; the first routes cost %g", c.args, r, first)
		}
	}
	kool := []string{"eval", "--policy", "cvrp20", "--device", "cpu", "--testset", "kool", "--count", "2", "--json"}
	plain, found := object(t, append(kool, "--decode", "pomo:1")...), object(t, append(kool, "--decode", "eas:2")...)
	if found["mean_cost"].(float64) > plain["mean_cost"].(float64) || found["routes_per_instance"] != 60.0 || found["valid"] != true {
		t.Errorf("%v, and pomo:1 %v", found, plain)
	}
	if timed := object(t, append(kool, "--decode", "eas", "--time", "1ms")...); timed["mean_cost"].(float64) > plain["mean_cost"].(float64) || timed["routes_per_instance"] != nil {
		t.Errorf("by time %v, and pomo:1 %v", timed, plain)
	}
}

// TestTheChosenPolicyIsNamed: auto says which policy it took, as a report and as JSON.
func TestTheChosenPolicyIsNamed(t *testing.T) {
	args := []string{"solve", "../../docs/examples/grid20.vrp", "--policy", "auto", "--device", "cpu", "--decode", "greedy"}
	if r := object(t, append(args, "--json")...); r["policy"] != "cvrp20" {
		t.Errorf("%v", r)
	}
	if r := haul(t, args...); r.code != 0 || !strings.Contains(r.stdout, "policy (cvrp20, greedy)") {
		t.Errorf("%+v", r)
	}
}
