package main

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"haul/internal/safetensors"
)

// A run in bf16 that was resumed as it had said itself went on in another precision, and so to other weights.
func TestResumeKeepsThePrecision(t *testing.T) {
	train := func(dir string, args ...string) map[string]any {
		t.Helper()
		r := haul(t, args...)
		if r.code != exitDone || strings.Contains(r.stderr, "was written") {
			t.Fatalf("%v: exit %d, %s", args, r.code, r.stderr)
		}
		f, err := safetensors.Load(filepath.Join(dir, "last.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if p := f.Metadata["haul.precision"]; p != "bf16" {
			t.Errorf("%v: its checkpoint is of %q", args, p)
		}
		out := map[string]any{}
		for _, tensor := range f.Tensors {
			out[tensor.Name] = tensor
		}
		return out
	}
	dir, args := tiny(t, "--precision", "bf16", "--device", "cpu", "--epochs", "2")
	whole := train(dir, args...)
	half, args := tiny(t, "--precision", "bf16", "--device", "cpu", "--epochs", "1")
	train(half, args...)
	got := train(half, "train", "--resume", half, "--device", "cpu", "--epochs", "2")
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		if !reflect.DeepEqual(got[name], whole[name]) {
			t.Errorf("resumed without --precision, the run ends with another %s", name)
		}
	}
	r := haul(t, "train", "--resume", half, "--device", "cpu", "--epochs", "3", "--precision", "fp32")
	if r.code != exitDone || !strings.Contains(strings.Join(strings.Fields(r.stderr), " "), "was written") {
		t.Errorf("another precision: exit %d, %s", r.code, r.stderr)
	}
}
