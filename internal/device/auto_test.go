package device

import (
	"reflect"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
)

// Precision auto times the CPU in every precision that it has itself and takes the faster; nothing
// else leaves fp32 unasked.
func TestAutoPrecision(t *testing.T) {
	precision := func(d kernel.Device) string { return d.(*cpu.Device).Precision() }
	for _, faster := range []string{"fp32", "bf16"} {
		dev, table, err := Auto("cpu", Options{Workers: 1, Precision: Any}, func(d kernel.Device) (float64, error) {
			if precision(d) == faster {
				return 1, nil
			}
			return 2, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := faster
		if !cpu.HasBF16() {
			want = "fp32"
		}
		if got := precision(dev); got != want {
			t.Errorf("%s is faster: picked %s of %+v", faster, got, table)
		}
		if cpu.HasBF16() && (len(table) != 2 || table[0].Precision != "fp32" || table[1].Precision != "bf16") {
			t.Errorf("candidates %+v", table)
		}
		dev.Close()
	}
	for asked, want := range map[string]string{"": "fp32", "fp32": "fp32", "bf16": "bf16"} {
		dev, table, err := Auto("cpu", Options{Workers: 1, Precision: asked}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := precision(dev); got != want || len(table) != 1 || !table[0].Picked {
			t.Errorf("precision %q opened %s, candidates %+v", asked, got, table)
		}
		dev.Close()
	}
	if _, _, err := Auto("cpu", Options{Precision: "tf32"}, nil); err == nil || !strings.Contains(err.Error(), "for GPUs") {
		t.Errorf("tf32 on the CPU: %v", err)
	}
}

func TestChoicesOfOneCard(t *testing.T) {
	for precision, want := range map[string]string{"": "", Any: "", "bf16": "bf16", "tf32": "tf32"} {
		if got := choices("cuda:1", precision); !reflect.DeepEqual(got, []choice{{name: "cuda:1", precision: want}}) {
			t.Errorf("precision %q: %+v", precision, got)
		}
	}
}

// Cores of two kinds are tried both ways on the CPU, and on no card; cores of one kind once.
func TestSpread(t *testing.T) {
	from := []choice{{name: "cpu", precision: "bf16"}, {name: "cuda:0"}}
	want := []choice{{"cpu", "bf16", 4}, {"cpu", "bf16", 8}, {name: "cuda:0"}}
	if got := spread(from, 4, 8); !reflect.DeepEqual(got, want) {
		t.Errorf("4 of 8 cores are fast: %+v", got)
	}
	if got := spread(from, 8, 8); !reflect.DeepEqual(got, from) {
		t.Errorf("8 cores of one kind: %+v", got)
	}
}
