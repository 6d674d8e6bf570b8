package policy

import (
	"context"
	"errors"
	"haul/internal/rng"
	"haul/internal/run/runtest"
	"os"
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
		got, err := Reference(dead, src, 20, 2, nil) // nothing can be solved: it must come from the cache
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
