package routing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/report"
	"haul/internal/vrp"
)

// infoOf returns the description of a run that listeners receive.
func infoOf(t *testing.T, dir string) (*report.Info, *view) {
	c := tiny(t, "training.num_epochs=10", "training.num_batches_per_epoch=100", "training.batch_size=128", "problem.num_customers=2", "baseline.type=pomo")
	v := &view{cfg: c, shard: 16, flops: 6.5e9}
	v.info = &report.Info{Recipe: config.RecipeGT, Config: "quick", Parameters: 594700, Device: "cpu (avx512, 2 workers)", Precision: "fp32", Memory: 1 << 27, Dir: dir, Tables: tables(c), View: v}
	return v.info, v
}

func rowOf(epoch int) *Epoch {
	cost, gap := 0.4+1/float64(epoch+1), 1/float64(epoch+1)
	return &Epoch{Epoch: epoch, Epochs: 10, TrainCPC: cost + 0.1, ValCPC: &cost, ValGap: &gap, GapTo: "optimum", GapToCPC: 0.39,
		BaselineType: "pomo", MeanType: "arithmetic", Seconds: 2, ValSeconds: 1, Instances: 100, InstancesPerSecond: 50, FLOPsPerSecond: 4e9, LR: 1e-3, Asked: report.Asked{Launches: 25}}
}

func reportEpoch(l report.Listener, v *view, epoch int) {
	r := &report.Record{Kind: "epoch", At: epoch, Row: rowOf(epoch)}
	v.Add(r, false)
	l.Record(r)
}

func summaryOf(dir string) *Summary {
	return &Summary{Epochs: 10, Instances: 1000, Seconds: 33, BestEpoch: 9, BestCPC: 0.41, TestInstances: 10000, GapInstances: 10000, TestGap: 0.055, GapTo: "optimum",
		Dir: dir, Best: filepath.Join(dir, "best.safetensors"), Last: filepath.Join(dir, "last.safetensors")}
}

// TestBannerNamesMuon: the banner names the optimizer if it is not the default.
func TestBannerNamesMuon(t *testing.T) {
	for name, want := range map[string]bool{"adamw": false, "muon": true} {
		_, rows := (&view{cfg: tiny(t, "training_advanced.optimizer="+name), shard: 16}).Banner(true)
		if got := strings.Contains(fmt.Sprint(rows), "muon for weight matrices"); got != want {
			t.Errorf("%s: %v", name, rows)
		}
	}
}

// TestBannerDescribesStarts: the banner describes the starts of routes and the number of symmetries
// if they are not the default. The end advises the decoder that fits such a policy.
func TestBannerDescribesStarts(t *testing.T) {
	for _, c := range []struct {
		sets               []string
		starts, of, advice string
	}{
		{[]string{"baseline.type=pomo"}, "pomo, 5 starts per instance", "", "--decode pomo8"},
		{views, "pomo, 5 starts per instance, viewed", "", "--decode pomo8:1"},
		{append([]string{"training.batch_size=40"}, leaders...), "pomo, 5 starts per instance", ", under 8 symmetries, which count as 8 instances", "--decode pomo8"},
	} {
		v := &view{cfg: tiny(t, c.sets...), shard: 16}
		_, rows := v.Banner(true)
		if want := [2]string{"baseline", c.starts + c.of}; !slices.Contains(rows, want) {
			t.Errorf("%v: %v", c.sets, rows)
		}
		if end := fmt.Sprint(v.ending(summaryOf("runs/mine"))); !strings.Contains(end, "haul eval --checkpoint runs/mine "+c.advice+"]") {
			t.Errorf("%v: %s", c.sets, end)
		}
	}
}

// TestFolder: the history begins with the original program's columns, and the pictures name both
// sides.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	f := report.NewFolder(func(s string) { t.Errorf("noted %q", s) })
	i, v := infoOf(t, dir)
	f.Start(i)
	for e := 1; e <= 3; e++ {
		reportEpoch(f, v, e)
	}
	s := vrp.Solution{Routes: [][]int32{{1, 2}}}
	p := &vrp.Problem{Name: "test instance 0", Capacity: 9, Demand: []int32{0, 1, 2}, X: []float64{0, 1, 1}, Y: []float64{0, 0, 1}}
	v.example, v.reference = &Example{Problem: p, Policy: s, Reference: s, PolicyCost: 3.4, ReferenceCost: 3.4}, "optimum"
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := "epoch,train_loss,train_cost_arithmetic,val_cost_arithmetic,learning_rate,temperature,time_per_epoch,baseline_type,baseline_value,mean_type,val_se,"
	if got := read(historyGT); !strings.HasPrefix(got, want) {
		t.Errorf("the history is %s", got)
	}
	if got := read("routes.svg"); !strings.Contains(got, ">policy<") || !strings.Contains(got, ">optimum<") || !strings.Contains(got, "GT+RL · gap +0.00 %") {
		t.Error("routes.svg names not both sides")
	}
	if read("curves.svg") == "" || read("curves.png") == "" {
		t.Error("no curves")
	}
}

// TestWords: a pipe gets one line per epoch, and the end summarises the run.
func TestWords(t *testing.T) {
	var words, result bytes.Buffer
	term := &report.Terminal{Screen: report.Screen{Words: &words, Result: &result}}
	i, v := infoOf(t, "runs/quick-001")
	term.Start(i)
	for e := 1; e <= 3; e++ {
		term.Tick(report.Tick{Updates: 50, Total: 1000, PerSecond: 20})
		reportEpoch(term, v, e)
	}
	term.Done(v.ending(summaryOf("runs/quick-001")))
	if n := strings.Count(words.String(), "\nepoch "); n != 3 {
		t.Errorf("%d lines of epochs, want 3:\n%s", n, words.String())
	}
	for _, want := range []string{"GT+RL", "8 shards of 16", "2 starts", "gap +50.00 %"} {
		if !strings.Contains(words.String(), want) {
			t.Errorf("the words do not say %q:\n%s", want, words.String())
		}
	}
	for _, want := range []string{"+5.50", "haul eval --checkpoint runs/quick-001", "steps", "validation", "75 launches", "50 instances/s, 4 GFLOP/s", "best.safetensors"} {
		if !strings.Contains(result.String(), want) {
			t.Errorf("the summary does not say %q:\n%s", want, result.String())
		}
	}
}

// TestStatus: the bar is the epoch's, also when its last step is done, and what is left counts the
// epochs after it.
func TestStatus(t *testing.T) {
	_, v := infoOf(t, "x")
	for _, c := range []struct {
		updates int
		place   string
		share   float64
		left    float64 // seconds at 20 steps per second
	}{{50, "1/10", 0.5, 47.5}, {100, "1/10", 1, 45}, {101, "2/10", 0.01, 44.95}, {1000, "10/10", 1, 0}} {
		s := v.Status(report.Tick{Updates: c.updates, Total: 1000, PerSecond: 20})
		if s.Place != c.place || s.Share != c.share || s.Left < c.left-1e-9 || s.Left > c.left+1e-9 {
			t.Errorf("after %d updates: %+v, want %+v", c.updates, s, c)
		}
	}
}

// TestAQuantityHasOneName: a quantity that an epoch's object and its row both contain has the
// object's name in the row too.
func TestAQuantityHasOneName(t *testing.T) {
	row := reflect.TypeFor[Epoch]()
	for i := range row.NumField() {
		tag := row.Field(i).Tag
		if tag.Get("csv") != "" && tag.Get("csv") != tag.Get("json") && tag.Get("also") != tag.Get("json") {
			t.Errorf("%s is %s in a row and %s in an object", row.Field(i).Name, tag.Get("csv"), tag.Get("json"))
		}
	}
}

// TestEpochObjects: what scripts read of an epoch.
func TestEpochObjects(t *testing.T) {
	text, err := json.Marshal(rowOf(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"epoch", "seconds", "instances", "train_cpc", "val_cpc", "val_gap", "baseline_cpc", "lr", "val_seconds", "baseline_seconds", "launches"} {
		if !bytes.Contains(text, []byte(`"`+key+`":`)) {
			t.Errorf("%s is missing in %s", key, text)
		}
	}
}

// TestARunWithViewsSaysHowItWasJudged: the end of a run and its pictures name the decoder that was
// used.
func TestARunWithViewsSaysHowItWasJudged(t *testing.T) {
	var settings config.Config
	settings.Model.StartViews, settings.Training.ValidationDecode = true, "pomo"
	v := &view{cfg: &settings}
	if end := v.ending(&Summary{TestInstances: 7, GapInstances: 7}); !strings.Contains(fmt.Sprint(end), "7 instances, pomo:1") {
		t.Errorf("%v", end)
	}
	if end := v.ending(&Summary{TestInstances: 7, GapInstances: 3}); !strings.Contains(fmt.Sprint(end), "7 instances (the gap over 3), pomo:1") {
		t.Errorf("a gap over some instances is not told: %v", end)
	}
}

// A gap is in percent, with its standard error where there are two instances and more.
func TestGapsInPercent(t *testing.T) {
	if got := gapOf(1, 0.05, 0.001); got != "+5.000 %" {
		t.Error(got)
	}
	if got := gapOf(2, 0.05, 0.001); got != "+5.000 ± 0.100 %" {
		t.Error(got)
	}
}
