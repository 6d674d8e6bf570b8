package e2e

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/cmd/haul/clitest"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/solve"
	"haul/policies"
)

// trainedPolicy is the folder of a run that is over in a blink.
func trainedPolicy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	args := append([]string{"train", "--config", "quick", "--device", "cpu", "--epochs", "1", "--out", dir}, smallNetwork()...)
	if r := haul(t, args...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	return dir
}

// TestPackedPolicy: weights and settings alone route as the run's own checkpoint does, in bf16
// nearly so, and no run continues from them.
func TestPackedPolicy(t *testing.T) {
	wholeOnly(t)
	dir := trainedPolicy(t)
	cost := func(path string) float64 {
		return object(t, "eval", "kool:10", "--checkpoint", path, "--device", "cpu", "--count", "50", "--decode", "pomo", "--json")["mean_cost"].(float64)
	}
	whole := cost(dir)
	sizes := map[string]float64{}
	for _, kind := range []string{"fp32", "bf16"} {
		out := filepath.Join(t.TempDir(), kind+".safetensors")
		r := object(t, "policies", "pack", dir, "--type", kind, "--out", out, "--json")
		st, err := os.Stat(out)
		if err != nil || r["bytes"] != float64(st.Size()) || r["customers"] != 5.0 || r["instances"] != 480.0 || r["type"] != kind {
			t.Errorf("%v: %v", r, err)
		}
		sizes[kind] = float64(st.Size())
		packed := cost(out)
		if kind == "fp32" && packed != whole || math.Abs(packed/whole-1) > 0.05 {
			t.Errorf("%s: %v, the run's own checkpoint %v", kind, packed, whole)
		}
		refused(t, []string{"policies", "pack", dir, "--out", out}, exitFailed, "--force")
		last := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(last, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err == nil {
			err = os.WriteFile(filepath.Join(last, "last.safetensors"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := haul(t, "train", "--resume", last, "--device", "cpu", "--epochs", "2"); r.code != exitFailed || !strings.Contains(r.stderr, "is missing") && !strings.Contains(r.stderr, "state") {
			t.Errorf("a run went on from weights alone: %d, %s", r.code, r.stderr)
		}
	}
	if !(sizes["bf16"] < sizes["fp32"]) {
		t.Errorf("%v", sizes)
	}
}

func TestPoliciesRefuse(t *testing.T) {
	wholeOnly(t)
	square := write(t, "square.vrp", clitest.SquareVRP)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"policies", "pack"}, exitUsage, "name a run folder"},
		{[]string{"policies", "pack", "x"}, exitUsage, "--out is missing"},
		{[]string{"policies", "pack", "x", "--out", "y", "--type", "int4"}, exitUsage, `unknown type "int4"`},
		{[]string{"policies", "pack", "nosuch", "--out", "y.safetensors"}, exitFailed, "nosuch"},
		{[]string{"policies", "nosuch"}, exitUsage, `no policy "nosuch"`},
		{[]string{"solve", square, "--policy", "nosuch"}, exitUsage, `no policy "nosuch"`},
		{[]string{"solve", square, "--policy", "a", "--method", "exact"}, exitUsage, "--method and --policy"},
		{[]string{"solve", "--policy", "a"}, exitUsage, "name the file to solve"},
		{[]string{"solve", square, "--set", "decode=pomo"}, exitUsage, "name one with --policy"},
		{[]string{"eval", "--policy", "nosuch"}, exitUsage, `no policy "nosuch"`},
		{[]string{"eval"}, exitUsage, "name the set to solve"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) { refused(t, c.args, c.code, c.want) })
	}
}

// TestShippedPolicies: each is listed, routes a file and a set like those that it was trained on,
// and a plain solve names the one that fits and does something else.
func TestShippedPolicies(t *testing.T) {
	wholeOnly(t)
	names := policies.Names()
	r := haul(t, "policies")
	if r.code != exitDone || len(names) == 0 && !strings.Contains(r.stdout, "no policies") {
		t.Fatal(r.stderr, r.stdout)
	}
	for _, name := range names {
		if !strings.Contains(r.stdout, name+" ") {
			t.Errorf("%s is not listed: %s", name, r.stdout)
		}
		info := object(t, "policies", name, "--json")
		if card := haul(t, "policies", name); card.code != exitDone || !strings.HasPrefix(card.stdout, "# "+name) {
			t.Errorf("%s: %s", name, card.stdout)
		} else if all := report.Thousands(int64(info["instances"].(float64))) + " instances"; !strings.Contains(card.stdout, all) ||
			!strings.Contains(r.stdout, strings.Fields(all)[0]) {
			t.Errorf("%s: the file says %s; list and card must say so too (haul policies pack --began names runs that a file does not know)", name, all)
		}
		n := info["customers"].(float64)
		// of 200 customers the search's mean on these ten, in 200,000 iterations each
		hgs := map[float64]float64{20: 6.130, 50: 10.366, 100: 15.563, 200: 19.776}[n]
		got := object(t, "eval", "kool", "--policy", name, "--device", "cpu", "--workers", "1", "--count", "10", "--decode", "pomo", "--json")
		// the first 10 lie within a few percent of all
		if got["customers"] != n || !(got["mean_cost"].(float64) < 1.10*hgs) {
			t.Errorf("%s: %v, HGS's mean over all is %v", name, got, hgs)
		}
	}
	square := write(t, "square.vrp", clitest.SquareVRP)
	plain := haul(t, "solve", square)
	// a policy does no better than the optimum
	if plain.code != exitDone || !strings.Contains(plain.stdout, "exact") || plain.stderr != "" {
		t.Fatalf("%s %s", plain.stdout, plain.stderr)
	}
	if plain = haul(t, "solve", write(t, "many.vrp", clitest.ManyVRP(solve.Find(solve.Exact).Alone+1))); plain.code != exitDone || !strings.Contains(plain.stdout, "search") {
		t.Fatalf("%s %s", plain.stdout, plain.stderr)
	}
	if told := strings.Contains(plain.stderr, "--policy "); told != (len(names) > 0) {
		t.Errorf("%q", plain.stderr)
	}
	if len(names) > 0 {
		// the optimum; each customer alone
		if r := object(t, "solve", square, "--policy", names[0], "--set", "device=cpu", "--set", "decode=pomo8", "--json"); r["method"] != "policy" || r["valid"] != true || r["cost"].(float64) < 68 || r["cost"].(float64) > 80 {
			t.Errorf("%v", r)
		}
	}
}

// TestHostileInstances: whatever a file of instances holds, a user sees one line.
func TestHostileInstances(t *testing.T) {
	names := policies.Names()
	if len(names) == 0 {
		t.Skip("no policy to judge with")
	}
	hostile, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "pickle", "testdata", "hostile-4.pkl"))
	if err != nil {
		t.Fatal(err)
	}
	limited := t.TempDir()
	for name, text := range map[string]string{"a.vrp": clitest.SquareVRP, "b.vrp": strings.Replace(clitest.SquareVRP, "CAPACITY : 10", "CAPACITY : 10\nDISTANCE : 90", 1)} {
		if err := os.WriteFile(filepath.Join(limited, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, want string }{
		{"a pickle that calls", write(t, "a.pkl", string(hostile)), "never called"},
		{"a cut pickle", write(t, "a.pkl", string(hostile[:9])), "not a pickle that can be read"},
		{"an empty archive", write(t, "a.npz", ""), "not an .npz file"},
		{"text for tensors", write(t, "a.pt", "hello"), "not a .pt file"},
		{"another format", write(t, "a.json", "{}"), "instances are read from"},
		{"an empty folder", t.TempDir(), "no .vrp files"},
		{"a limit beside the capacity", limited, "b: a policy cannot route it"},
		{"no coordinates", write(t, "a.vrp", clitest.ExplicitVRP), "no coordinates"},
		{"nothing", filepath.Join(t.TempDir(), "nosuch.npz"), "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, []string{"eval", c.path, "--policy", names[0], "--device", "cpu"}, exitFailed, c.want)
		})
	}
	set := write(t, "a.vrp", clitest.SquareVRP)
	refused(t, []string{"eval", set, "--policy", names[0], "--device", "cpu", "--reference", write(t, "r.csv", "cost\n")}, exitFailed, "0 costs for 1 instances")
	r := object(t, "eval", set, "--policy", names[0], "--device", "cpu", "--reference", write(t, "r.csv", "cost\n68\n"), "--decode", "pomo8", "--json")
	cost, gap := r["mean_cost"].(float64), r["mean_gap"].(float64)
	// the reference is the optimum; 80 is each customer alone
	if cost < 68 || cost > 80 || math.Abs(gap-(cost/68-1)) > 1e-12 {
		t.Errorf("%v", r)
	}
}

// TestSolveDecodesWellByDefault: one file is routed as thoroughly as a second allows, and says how;
// a search begins with one route.
func TestSolveDecodesWellByDefault(t *testing.T) {
	wholeOnly(t)
	with := func(policy string, n int, more ...string) map[string]any {
		return object(t, append([]string{"solve", write(t, "many.vrp", clitest.ManyVRP(n)), "--policy", policy, "--set", "device=cpu", "--json"}, more...)...)
	}
	// Starts that are viewed, as cvrp20's are, are drawn, but not far from the size that it was
	// trained on.
	for policy, temperature := range map[string]string{"cvrp20": ":1", "cvrp50": ""} {
		best := with(policy, 30)
		if by := with(policy, 30, "--set", "decode=pomo8"+temperature); best["decode"] != "pomo8"+temperature || best["method"] != "policy" || by["cost"] != best["cost"] {
			t.Errorf("%v, by pomo8%s %v", best, temperature, by)
		}
	}
	if r := with("cvrp20", 41); r["decode"] != "pomo8" {
		t.Errorf("41 customers: %v", r["decode"])
	}
	if r := with("cvrp20", policy.MostForPomo8+1); r["decode"] != "pomo" {
		t.Errorf("past %d customers: %v", policy.MostForPomo8, r["decode"])
	}
	other := func(seed string) any { return with("cvrp20", 30, "--set", "decode=sample:1,3", "--seed", seed)["cost"] }
	if a, again, b := other("1"), other("1"), other("2"); a != again || a == b {
		t.Errorf("drawn routes cost %v, %v and of another seed %v", a, again, b)
	}
	if r := with("cvrp20", 30, "--set", "decode=greedy"); r["decode"] != "greedy" {
		t.Errorf("%v", r["decode"])
	}
	large := write(t, "large.vrp", clitest.ManyVRP(1001))
	if r := haul(t, "solve", large, "--policy", "cvrp20", "--set", "device=cpu"); r.code != exitDone || !strings.Contains(r.stdout, ", policy (cvrp20, greedy)\n") ||
		!strings.Contains(r.stderr, "1,001 customers are routed by greedy") {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	r := haul(t, "solve", write(t, "many.vrp", clitest.ManyVRP(30)), "--policy", "cvrp20", "--set", "device=cpu", "--iterations", "10")
	if r.code != exitDone || !strings.Contains(r.stdout, ", policy (cvrp20, greedy) and search\n") || r.stderr != "" {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

// TestAnEvaluationIsNotLost: a place that takes no folder is told before the work, here before the
// device is looked for, and where routes cannot be written after it the mean is told.
func TestAnEvaluationIsNotLost(t *testing.T) {
	eval := func(out, device string) result {
		return haul(t, "eval", "../../../docs/examples/grid20.vrp", "--policy", "cvrp20", "--device", device, "--out", out)
	}
	if r := eval(filepath.Join(write(t, "file", "x"), "routes"), "cuda:0"); r.code != exitFailed || !strings.Contains(r.stderr, "not a directory") {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "grid20.sol", "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := eval(dir, "cpu"); r.code != exitFailed || !strings.Contains(r.stderr, "; the mean cost is 5") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
}

// TestOneInstanceHasNoSpread: a mean over one was given a standard error of zero.
func TestOneInstanceHasNoSpread(t *testing.T) {
	for _, args := range [][]string{{"--instances", "../../../docs/examples/grid20.vrp", "--reference", write(t, "r.csv", "cost\n587\n")}, {"--count", "1"}} {
		r := haul(t, append([]string{"eval", "--policy", "cvrp20", "--device", "cpu"}, args...)...)
		if r.code != exitDone || !strings.Contains(r.stdout, ", 1 instance") || strings.Contains(r.stdout, ", 1 instances") || strings.Contains(r.stdout, "±") || !strings.Contains(r.stdout, "\ngap ") {
			t.Errorf("%v: exit %d, %q, %q", args, r.code, r.stdout, r.stderr)
		}
	}
}

// TestPoliciesNameTheirDecoder: the list says how each routes a problem of its own size, as haul
// solve then does.
func TestPoliciesNameTheirDecoder(t *testing.T) {
	list := haul(t, "policies").stdout
	for _, name := range policies.Names() {
		want := "pomo8"
		if name == "cvrp20" { // whose starts are viewed
			want = "pomo8:1"
		}
		at := strings.Index(list, name)
		if at < 0 || !slices.Contains(strings.Fields(strings.SplitN(list[at:], "\n", 2)[0]), want) {
			t.Errorf("%s is not listed with %s: %s", name, want, list)
		}
		if got := object(t, "policies", name, "--json")["decode"]; got != want {
			t.Errorf("%s decodes by %v, want %s", name, got, want)
		}
	}
}

// TestEvalNamesTheBetterDecoder: whoever asks for a policy's most likely routes, of a set or of
// generated instances, is told of the drawn ones.
func TestEvalNamesTheBetterDecoder(t *testing.T) {
	wholeOnly(t)
	for _, of := range [][]string{{"--testset", "kool"}, nil} {
		for decode, told := range map[string]bool{"pomo": true, "pomo:1": false, "greedy": false} {
			r := haul(t, append([]string{"eval", "--policy", "cvrp20", "--device", "cpu", "--count", "2", "--decode", decode}, of...)...)
			if r.code != exitDone || strings.Contains(r.stdout, "--decode pomo:1: ") != told {
				t.Errorf("%v by %s: exit %d, told should be %v: %s%s", of, decode, r.code, told, r.stdout, r.stderr)
			}
		}
	}
}
