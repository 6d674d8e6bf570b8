package e2e

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/safetensors"
)

// TestViewsByEveryVerb: a policy trained with start_views is decoded with them by eval, solve and
// serve where routes are drawn: the same weights route otherwise once their settings do not ask for
// views, and greedily and by the most likely routes the same.
func TestViewsByEveryVerb(t *testing.T) {
	wholeOnly(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, "runs", name) }
	args := append([]string{"train", "--config", "tiny_1", "--epochs", "1", "--out", at("viewed")}, fromSettings...)
	if r := haul(t, append(args, "--set", "baseline.type=pomo", "--set", "model.start_views=true", "--set", "training.learning_rate=0.01")...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	if err := os.CopyFS(at("forced"), os.DirFS(at("viewed"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"best.safetensors", "last.safetensors"} {
		f, err := safetensors.Load(filepath.Join(at("forced"), name))
		if err != nil {
			t.Fatal(err)
		}
		text := f.Metadata["haul.config"]
		if f.Metadata["haul.config"] = strings.Replace(text, "start_views: true", "start_views: false", 1); f.Metadata["haul.config"] == text {
			t.Fatalf("%s does not remember its views:\n%s", name, text)
		}
		var out bytes.Buffer
		if err := safetensors.Write(&out, f); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at("forced"), name), out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vrp, coords, demands := "NAME : p\nTYPE : CVRP\nDIMENSION : 25\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 20\nNODE_COORD_SECTION\n", "", ""
	demand := "DEMAND_SECTION\n"
	for j := range 25 {
		x, y, q := (37*j)%101, (53*j+7)%97, 1+(5*j)%7
		if j == 0 {
			q = 0
		}
		vrp += fmt.Sprintln(j+1, x, y)
		demand += fmt.Sprintln(j+1, q)
		coords += fmt.Sprintf(",[%d,%d]", x, y)
		demands += fmt.Sprintf(",%d", q)
	}
	file := write(t, "p.vrp", vrp+demand+"DEPOT_SECTION\n1\n-1\nEOF\n")
	_, url := startServer(t, dir)
	cost := map[string]float64{}
	for _, name := range []string{"viewed", "forced"} {
		eval := func(decode string) {
			cost["eval "+decode+" "+name] = object(t, "eval", "kool:10", "--checkpoint", at(name), "--count", "50", "--decode", decode, "--device", "cpu", "--json")["mean_cost"].(float64)
		}
		eval("greedy")
		eval("pomo")
		eval("pomo:1")
		cost["solve "+name] = object(t, "solve", file, "--policy", at(name), "--set", "distance=exact", "--set", "decode=pomo8:1", "--json")["cost"].(float64)
		var solved struct {
			Policy string
			Cost   float64
			Detail string
		}
		body := fmt.Sprintf(`{"coords": [%s], "demands": [%s], "capacity": 20, "method": "policy", "policy": %q, "decode": "pomo8:1"}`, coords[1:], demands[1:], name)
		if code := ask(t, url+"/api/v1/solve", body, &solved); code != 200 || math.Abs(solved.Cost-cost["solve "+name]) > 1e-6*solved.Cost {
			t.Errorf("%s: %d %+v over HTTP, %g by solve", name, code, solved, cost["solve "+name])
		}
	}
	for of, same := range map[string]bool{"eval greedy ": true, "eval pomo ": true, "eval pomo:1 ": false, "solve ": false} {
		if viewed, forced := cost[of+"viewed"], cost[of+"forced"]; (viewed == forced) != same {
			t.Errorf("%s: %v viewed and %v forced", of, viewed, forced)
		}
	}
}

// TestViewsFromOthers: weights fit whether their run had views or not, and the change is told of,
// without a word of another network; a run that is resumed keeps its views, and is refused others.
func TestViewsFromOthers(t *testing.T) {
	wholeOnly(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	settings := append([]string{"--config", "tiny_1", "--set", "baseline.type=pomo"}, fromSettings...)
	for i, c := range []struct{ name, views, from, told string }{
		{name: "forced", views: "false"},
		{"viewed", "true", "forced", "model.start_views was false there and is true here"},
		{"forced again", "false", "viewed", "model.start_views was true there and is false here"},
	} {
		args := append([]string{"train", "--out", at(c.name), "--epochs", "1", "--seed", fmt.Sprint(i), "--set", "model.start_views=" + c.views}, settings...)
		if c.from != "" {
			args = append(args, "--from", at(c.from))
		}
		r := haul(t, args...)
		words := strings.Join(strings.Fields(r.stderr), " ")
		if r.code != exitDone || strings.Contains(words, "network") || strings.Contains(words, "start_views") != (c.told != "") || !strings.Contains(words, c.told) {
			t.Fatalf("%s: exit %d, %s", c.name, r.code, words)
		}
	}
	if r := haul(t, "train", "--resume", at("viewed"), "--epochs", "2", "--device", "cpu"); r.code != exitDone {
		t.Fatalf("exit %d, %s", r.code, r.stderr)
	}
	f, err := safetensors.Load(filepath.Join(at("viewed"), "last.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if text := f.Metadata["haul.config"]; !strings.Contains(text, "start_views: true") || !strings.Contains(text, "num_epochs: 2") {
		t.Errorf("resumed, it has other settings:\n%s", text)
	}
	r := haul(t, "train", "--resume", at("viewed"), "--epochs", "3", "--device", "cpu", "--set", "model.start_views=false")
	if r.code == exitDone || !strings.Contains(r.stderr, "start_views: true") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
}
