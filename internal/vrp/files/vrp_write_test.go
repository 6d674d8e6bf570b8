package files

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"haul/internal/limits/limitstest"
	"haul/internal/vrp"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawProblem makes any problem WriteProblem takes.
func drawProblem(t *rapid.T, maxN int) *vrp.Problem {
	n := rapid.IntRange(1, maxN).Draw(t, "n")
	p := &vrp.Problem{Name: rapid.StringMatching(`[a-z":\t ]{0,8}`).Draw(t, "name"), Comment: rapid.StringMatching(`[ "a:é]{0,9}`).Draw(t, "comment"),
		Capacity: rapid.Int32Range(9, 30).Draw(t, "capacity"), Metric: vrp.Metric(rapid.IntRange(0, 3).Draw(t, "metric"))}
	p.Demand = append([]int32{0}, rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "demand")...)
	if p.Metric != vrp.Explicit || rapid.Bool().Draw(t, "drawn") {
		coord := rapid.Float64Range(-1000, 1000)
		p.X, p.Y = rapid.SliceOfN(coord, n+1, n+1).Draw(t, "x"), rapid.SliceOfN(coord, n+1, n+1).Draw(t, "y")
	}
	if p.Metric == vrp.Explicit {
		// In thousandths: legs below 2^-55 of the longest are none to the exact method, and an optimum
		// made of such legs alone would be judged by what it cannot see.
		weight := rapid.Map(rapid.Float64Range(0, 1e6), func(w float64) float64 { return math.Round(1000*w) / 1000 })
		p.Weights = rapid.SliceOfN(weight, (n+1)*(n+1), (n+1)*(n+1)).Draw(t, "weights")
		if rapid.Bool().Draw(t, "symmetric") {
			for i := range n + 1 {
				p.Weights[i*(n+1)+i] = 0
				for j := range i {
					p.Weights[i*(n+1)+j] = p.Weights[j*(n+1)+i]
				}
			}
		}
	}
	return p
}

func TestWriteProblemReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 12)
		var b bytes.Buffer
		if err := WriteProblem(&b, p); err != nil {
			t.Fatal(err)
		}
		q, err := ReadProblem(&b, "f.vrp", Options{Distance: exactly(p.Metric == vrp.Exact)})
		if err != nil {
			t.Fatal(err)
		}
		q.Notes = nil // a small map's distances are noted
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestWriteProblemRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*vrp.Problem){
		"no customers":  func(p *vrp.Problem) { p.Demand = p.Demand[:1] },
		"capacity":      func(p *vrp.Problem) { p.Capacity = 0 },
		"depot demand":  func(p *vrp.Problem) { p.Demand[0] = 1 },
		"over capacity": func(p *vrp.Problem) { p.Demand[2] = 11 },
		"negative":      func(p *vrp.Problem) { p.Demand[2] = -1 },
		"coordinates":   func(p *vrp.Problem) { p.Y = p.Y[:2] },
		"weights":       func(p *vrp.Problem) { p.Metric = vrp.Explicit },
		"line break":    func(p *vrp.Problem) { p.Comment = "a\nb" },
	} {
		p := smallProblem()
		spoil(p)
		var b bytes.Buffer
		if err := WriteProblem(&b, p); err == nil || strings.Contains(err.Error(), "\n") || b.Len() > 0 {
			t.Errorf("%s: error %v after %d bytes", name, err, b.Len())
		}
	}
}

func FuzzReadProblem(f *testing.F) {
	f.Add([]byte(small), false)
	f.Add([]byte(strings.ReplaceAll(small, "\n", "\t\r\n")), true)
	f.Add([]byte("TYPE CVRP\nDIMENSION 3\nCAPACITY 2\nEDGE_WEIGHT_TYPE EXPLICIT\nEDGE_WEIGHT_FORMAT LOWER_ROW\nCOMMENT \"\"a\"\n"+
		"EDGE_WEIGHT_SECTION\n1 2 3\nDEMAND_SECTION\n1 1\n2 0\n3 1\nDEPOT_SECTION\n2 -1"), false)
	f.Add([]byte("{"), false) // JSON that ends
	f.Fuzz(func(t *testing.T, data []byte, exact bool) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			o := Options{Distance: exactly(exact)}
			p, err := ReadProblem(bytes.NewReader(data), "f.vrp", o)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "f.vrp:") || strings.Contains(err.Error(), "\n") {
					t.Fatalf("not one line with its place: %q", err)
				}
				return
			}
			var b bytes.Buffer
			if err := WriteProblem(&b, p); err != nil {
				t.Fatalf("what was read does not write: %v", err)
			}
			q, err := ReadProblem(&b, "back.vrp", o)
			if err != nil {
				t.Fatalf("what was written does not read: %v", err)
			}
			if diff := cmp.Diff(p, q); diff != "" {
				t.Fatal(diff)
			}
		}, data, exact)
	})
}

// TestManyVehiclesAreNoFile: a vehicle is a row of the format, so their number is limited.
func TestManyVehiclesAreNoFile(t *testing.T) {
	for count, want := range map[int]bool{mostVehicles - 1: true, mostVehicles: true, mostVehicles + 1: false, math.MaxInt32: false} {
		v := vrp.NewVehicleType(5)
		v.Count = count
		p := &vrp.Problem{Fleet: []vrp.VehicleType{v}, Demand: []int32{0, 1}, X: make([]float64, 2), Y: make([]float64, 2)}
		if err := WriteProblem(io.Discard, p); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "100000 at most") {
			t.Errorf("%d vehicles: %v", count, err)
		}
	}
}
