package e2e

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel/cpu"
	"haul/internal/safetensors"
)

// A run in bf16 that was resumed as it had said itself went on in another precision, and so to
// other weights.
func TestResumeKeepsThePrecision(t *testing.T) {
	wholeOnly(t)
	// then products are packed in plain Go, which the race detector makes twenty times as slow
	if !cpu.HasBF16() {
		wholeOnly(t)
	}
	train := func(dir string, args ...string) map[string]any {
		t.Helper()
		r := haul(t, args...)
		if r.code != exitDone || strings.Contains(r.stderr, "was written") {
			t.Fatalf("%v: exit %d, %s", args, r.code, r.stderr)
		}
		if told := strings.Contains(r.stderr, "bf16: this processor has no instructions for it"); told == cpu.HasBF16() {
			t.Errorf("%v: whether bf16 is slow here is told: %v", args, told)
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

// A checkpoint in a precision of some other build was refused as if a flag had named it, without a
// word of the file.
func TestResumeNamesTheFileOfAnUnknownPrecision(t *testing.T) {
	wholeOnly(t)
	dir, args := tiny(t, "--epochs", "1")
	if r := haul(t, args...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	last := filepath.Join(dir, "last.safetensors")
	f, err := safetensors.Load(last)
	if err != nil {
		t.Fatal(err)
	}
	f.Metadata["haul.precision"] = "fp4"
	var out bytes.Buffer
	if err := safetensors.Write(&out, f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(last, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"train", "--resume", dir, "--device", "cpu", "--epochs", "2"}, exitFailed, last+` was written in precision "fp4"`)
	if r := haul(t, "train", "--resume", dir, "--device", "cpu", "--epochs", "2", "--precision", "fp32"); r.code != exitDone {
		t.Errorf("with --precision: exit %d, %s", r.code, r.stderr)
	}
}

// A complete run whose history had been lost, or was somebody else's, fell over its own picture
// when it was judged once more. Its folder has a blank in its name, and what is to be copied from
// the screen takes that into account.
func TestResumeWithoutAHistory(t *testing.T) {
	wholeOnly(t)
	whole, args := tiny(t, "--epochs", "1")
	if r := haul(t, args...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	for name, text := range map[string]string{"lost": "", "another": "a,b\n1,2\n"} {
		dir := filepath.Join(t.TempDir(), "a run")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		history, code := filepath.Join(dir, "csv", "history_gt_rl.csv"), exitFailed
		err := os.WriteFile(history, []byte(text), 0o600)
		if text == "" {
			err, code = os.Remove(history), exitDone
		}
		if err != nil {
			t.Fatal(err)
		}
		r := haul(t, "train", "--resume", dir, "--device", "cpu")
		said := strings.Join(strings.Fields(r.stdout+r.stderr), " ")
		if r.code != code || !strings.Contains(said, "haul eval --checkpoint '"+dir+"' --decode pomo8") ||
			strings.Count(said, history+": "+history) > 0 {
			t.Errorf("%s: exit %d, %s%s", name, r.code, r.stdout, r.stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, "routes.svg")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The best weights of a run are used where its last checkpoint is gone or damaged; a run does not
// go on from them.
func TestBestIsUsedWithoutTheLast(t *testing.T) {
	wholeOnly(t)
	dir, args := tiny(t, "--epochs", "1")
	if r := haul(t, args...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	last := filepath.Join(dir, "last.safetensors")
	for _, spoil := range []func() error{func() error { return os.Truncate(last, 5) }, func() error { return os.Remove(last) }} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		r := object(t, "eval", "--checkpoint", dir, "--device", "cpu", "--count", "10", "--json")
		if r["checkpoint"] != filepath.Join(dir, "best.safetensors") {
			t.Errorf("%v", r)
		}
		refused(t, []string{"train", "--resume", dir, "--device", "cpu", "--epochs", "2"}, exitFailed, "last.safetensors")
	}
	if err := os.Remove(filepath.Join(dir, "best.safetensors")); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"eval", "--checkpoint", dir, "--device", "cpu"}, exitFailed, "last.safetensors: no such file")
}
