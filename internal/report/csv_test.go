package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/train"
)

func TestHistoryBeginsWithTheOriginalColumns(t *testing.T) {
	want := "epoch,train_loss,train_cost_arithmetic,val_cost_arithmetic,learning_rate,temperature,time_per_epoch,baseline_type,baseline_value,mean_type,"
	if got := strings.Join(epochs.header(), ","); !strings.HasPrefix(got, want) {
		t.Errorf("columns are %s", got)
	}
}

// anyReport draws a report with every column's field set.
func anyReport(t *rapid.T) train.EpochReport {
	var r train.EpochReport
	number := rapid.Float64Range(-1e12, 1e12)
	for _, c := range epochs {
		switch v := c.field(&r).(type) {
		case *int:
			*v = rapid.IntRange(1, 1e6).Draw(t, c.name)
		case *int64:
			*v = rapid.Int64().Draw(t, c.name)
		case *float64:
			*v = number.Draw(t, c.name)
		case **float64:
			if rapid.Bool().Draw(t, c.name+" measured") {
				x := number.Draw(t, c.name)
				*v = &x
			}
		case *bool:
			*v = rapid.Bool().Draw(t, c.name)
		case *string:
			*v = rapid.SampledFrom([]string{"", "optimum", "a \"quoted\", name"}).Draw(t, c.name)
		default:
			t.Fatalf("%s: a column of type %T is written as nothing", c.name, v)
		}
	}
	return r
}

func TestCellsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyReport(t)
		got, err := epochs.parse(epochs.cells(&want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func reportOf(epoch int) train.EpochReport {
	cost, gap := 0.4+1/float64(epoch+1), 1/float64(epoch+1)
	return train.EpochReport{Epoch: epoch, Epochs: 10, TrainCPC: cost + 0.1, ValCPC: &cost, ValGap: &gap, GapTo: "optimum", GapToCPC: 0.39,
		BaselineType: "pomo", MeanType: "arithmetic", Seconds: 2, ValSeconds: 1, Instances: 100, InstancesPerSecond: 50, Launches: 25, LR: 1e-3}
}

func TestResumeCutsTheHistory(t *testing.T) {
	whole := encode(epochs.header())
	for e := 1; e <= 4; e++ {
		r := reportOf(e)
		whole = append(whole, encode(epochs.cells(&r))...)
	}
	third := len(whole) - 40 // inside the fourth row
	for _, c := range []struct {
		name, text string
		done, want int
	}{
		{"fresh", string(whole), 0, 0},
		{"all", string(whole), 4, 4},
		{"past the checkpoint", string(whole), 2, 2},
		{"a torn row", string(whole[:third]), 4, 3},
		{"no file", "", 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "csv", "history.csv")
			if c.text != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			f, rows, err := epochs.open(path, c.done)
			if err != nil {
				t.Fatal(err)
			}
			next := reportOf(c.want + 1)
			if err := f.add(encode(epochs.cells(&next))); err != nil {
				t.Fatal(err)
			}
			if err := f.close(); err != nil {
				t.Fatal(err)
			}
			if len(rows) != c.want {
				t.Errorf("%d rows are kept, want %d", len(rows), c.want)
			}
			again, err := epochs.read(path, 100)
			if err != nil || len(again) != c.want+1 || again[c.want].Epoch != c.want+1 {
				t.Errorf("%d rows in the file, %v", len(again), err)
			}
		})
	}
}

func TestForeignHistoryIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.csv")
	const text = "epoch,other\n1,2\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := epochs.open(path, 3); err == nil || !strings.Contains(err.Error(), "columns differ") {
		t.Errorf("error is %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("the file holds %q, %v", got, err)
	}
}
