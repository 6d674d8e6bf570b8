package bench_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/bench"
	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestBenchSizes: a row per size, figures that agree with one another, a picture. What are no
// rising sizes is wrong use, and so are settings without customers.
func TestBenchSizes(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "s.svg")
	out := inprocess.Object(t, "bench", "sizes", "--device", "cpu", "--workers", "1", "--customers", "4,9", "--set", "training.batch_size=6", "--set", "model.hidden_dim=16", "--set", "model.num_layers=1", "--plot", picture, "--json")
	rows := out["sizes"].([]any)
	if len(rows) != 2 {
		t.Fatalf("%v", out)
	}
	var each []float64
	for i, want := range []float64{4, 9} {
		r := rows[i].(map[string]any)
		seconds, rate := r["seconds"].(float64), r["flops_per_second"].(float64)
		if r["customers"] != want || r["batch"] != 6.0 || seconds <= 0 || math.Abs(r["instances_per_second"].(float64)*seconds-6) > 1e-6 {
			t.Errorf("%v", r)
		}
		each = append(each, rate*seconds)
	}
	if !(each[1] > 2*each[0]) {
		t.Errorf("steps of 4 and 9 customers take %v operations", each)
	}
	text, err := os.ReadFile(picture)
	if err != nil || !strings.Contains(string(text), "Instances per second") {
		t.Error(err)
	}
	for flags, want := range map[string]string{"--customers 9,4": "larger than the one before", "--customers 4,4": "larger than the one before", "--customers 0": "1 or more", "--customers x": "1 or more", "--plot x.gif": "cannot write"} {
		inprocess.Refused(t, append([]string{"bench", "sizes"}, strings.Fields(flags)...), cli.ExitUsage, want)
	}
	inprocess.Refused(t, []string{"bench", "sizes", "--config", "ppo_darkroom"}, cli.ExitUsage, bench.KeyCustomers)
}

// TestBenchSizesReports: files of --json are drawn as one picture, a curve for each device, and
// nothing is timed. What is no such file is named.
func TestBenchSizesReports(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	card := write("card.json", `{"bench":"sizes","config":"large","device":"a card","sizes":[{"customers":100,"batch":512,"instances_per_second":104000,"flops_per_second":6e13},{"customers":200,"batch":512,"instances_per_second":30000,"flops_per_second":5e13}]}`)
	other := write("other.json", `{"bench":"sizes","config":"large","device":"another program","sizes":[{"customers":100,"batch":512,"instances_per_second":2000},{"customers":200,"batch":512,"instances_per_second":900}]}`)
	picture := filepath.Join(dir, "s.svg")
	if r := inprocess.Run(t, "bench", "sizes", "--reports", other+","+card, "--plot", picture); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	// once among the devices and in the legend of instances; that of operations has the card alone
	for name, want := range map[string]int{"a card": 3, "another program": 2} {
		if got := strings.Count(string(text), name); got != want {
			t.Errorf("the picture names %q %d times, want %d", name, got, want)
		}
	}
	if r := inprocess.Run(t, "bench", "sizes", "--reports", other, "--plot", picture); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	if text, err := os.ReadFile(picture); err != nil || strings.Contains(string(text), "GFLOP") {
		t.Errorf("a report without operations has a panel of them (%v)", err)
	}
	inprocess.Refused(t, []string{"bench", "sizes", "--reports", card}, cli.ExitUsage, "--plot")
	for flag, value := range map[string]string{"customers": "5", "workers": "1", "precision": "fp32"} {
		inprocess.Refused(t, []string{"bench", "sizes", "--reports", card, "--plot", picture, "--" + flag, value}, cli.ExitUsage, "--"+flag+" does not go with --reports")
	}
	for _, path := range []string{write("no.json", `{"bench":"scale"}`), write("text.json", "no"), filepath.Join(dir, "absent.json")} {
		inprocess.Refused(t, []string{"bench", "sizes", "--reports", path, "--plot", picture}, cli.ExitFailed, filepath.Base(path))
	}
}
