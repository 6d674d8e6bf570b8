package policy

import (
	"context"
	"errors"
	"haul/internal/rng"
	"haul/internal/run/runtest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"haul/internal/vrp"
)

func TestReferencesAreCached(t *testing.T) {
	runtest.Folder(t)
	for _, n := range []int{6, 14} {
		src := SourceOf(tiny(t), rng.ValidInstances)
		src.N = n
		want, err := Reference(t.Context(), src, 20, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := Reference(dead, src, 20, 2, nil) // nothing can be solved: the costs must come from the cache
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		other := src
		other.Seed++
		if _, err := Reference(dead, other, 20, 2, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("another seed's costs came from somewhere: %v", err)
		}
		path, _ := referencePath(src, 20, want.Method)
		if err := os.WriteFile(path, []byte("junk"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err = Reference(t.Context(), src, 20, 1, nil); err != nil || !cmp.Equal(want, got) {
			t.Errorf("a broken cache was not mended: %v", err)
		}
	}
	if ReferenceMethod(vrp.Source{N: 12}) != Optimum || ReferenceMethod(vrp.Source{N: 13}) != Search {
		t.Error("the limit of the exact method has moved")
	}
}

// If the time of a run is limited, the gap is computed over the instances with a known reference.
func TestReferencesOfALimitedRun(t *testing.T) {
	runtest.Folder(t)
	src := SourceOf(tiny(t), rng.ValidInstances)
	src.N = 14
	var calls []string
	note := func(s string) { calls = append(calls, s) }
	few, err := SharedReference(t.Context(), nil, src, 20, 1, 1, note)
	if err != nil || few.Known() != 2 || len(calls) != 1 || !strings.HasPrefix(calls[0], "2 of 20 reference costs are known") {
		t.Fatalf("%+v, %q, %v", few, calls, err)
	}
	all, err := SharedReference(t.Context(), nil, src, 20, 1, 0, note)
	// a slow machine also gets notes with the remaining time
	partly := slices.DeleteFunc(slices.Clone(calls), func(s string) bool { return !strings.Contains(s, "are known") })
	if err != nil || all.Known() != 20 || len(partly) != 1 {
		t.Fatalf("some of a set were taken for all of it: %+v, %q, %v", all, calls, err)
	}
	lengths := slices.Clone(all.Costs)
	for i := range lengths {
		lengths[i] += float64(i)
	}
	for _, c := range []struct {
		refs *References
		want int
	}{{few, 2}, {all, 20}} {
		known, costs := c.refs.Pairs(lengths)
		if !slices.Equal(known, lengths[:c.want]) || !slices.Equal(costs, all.Costs[:c.want]) {
			t.Errorf("%d pairs: %v, %v", c.want, known, costs)
		}
	}
}
