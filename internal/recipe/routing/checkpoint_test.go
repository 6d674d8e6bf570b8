package routing

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/safetensors"
)

// saved trains for one epoch and returns the last checkpoint's path and content.
func saved(t testing.TB, sets ...string) (string, *safetensors.File) {
	t.Helper()
	o := options(tiny(t, append(sets, "training.num_epochs=1")...), openCPU(t, 1))
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Dir.Close()
	f, err := safetensors.Load(o.Dir.Last())
	if err != nil {
		t.Fatal(err)
	}
	return o.Dir.Last(), f
}

func TestCheckpointNames(t *testing.T) {
	_, f := saved(t)
	for _, name := range []string{"embed.weight", "layers.0.qkv.weight", "adam_m.embed.weight", "adam_v.decoder.load.weight", "baseline.norm.bias", nameCosts} {
		if _, ok := f.Tensor(name); !ok {
			t.Errorf("%s is not in the checkpoint", name)
		}
	}
	_, f = saved(t, "baseline.type=pomo")
	if _, ok := f.Tensor("baseline.embed.weight"); ok {
		t.Error("a baseline that pomo does not have was saved")
	}
}

func TestDamagedCheckpoints(t *testing.T) {
	path, _ := saved(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(change func(f *safetensors.File)) []byte {
		f, err := safetensors.Read(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		change(f)
		var out bytes.Buffer
		if err := safetensors.Write(&out, f); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	drop := func(name string) func(*safetensors.File) {
		return func(f *safetensors.File) {
			for i, t := range f.Tensors {
				if t.Name == name {
					f.Tensors = append(f.Tensors[:i], f.Tensors[i+1:]...)
					return
				}
			}
		}
	}
	set := func(key, value string) func(*safetensors.File) {
		return func(f *safetensors.File) { f.Metadata[key] = value }
	}
	replace := func(key, old, text string) func(*safetensors.File) {
		return func(f *safetensors.File) {
			if !strings.Contains(f.Metadata[key], old) {
				t.Fatalf("%s has no %q", key, old)
			}
			f.Metadata[key] = strings.Replace(f.Metadata[key], old, text, 1)
		}
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
		sets []string // of the settings that it is resumed with
	}{
		{"empty", nil, "not a safetensors file", nil},
		{"text", []byte("epoch 3, all is well, trust me\n"), "not a safetensors file", nil},
		{"cut in the header", whole[:100], "truncated", nil},
		{"cut in the data", whole[:len(whole)-5], "truncated", nil},
		{"longer", append(bytes.Clone(whole), 1), "follow the last tensor", nil},
		{"foreign", edit(func(f *safetensors.File) { f.Metadata = map[string]string{"format": "pt"} }), "no Haul checkpoint", nil},
		{"version", edit(set("haul.format", "7")), "format version 7, this build reads 2", nil},
		{"model", edit(set("haul.model", "AD")), `model "AD"`, nil},
		{"settings", edit(set("haul.config", "problem: {num_customer: 3}")), "its settings", nil},
		{"no state", edit(set("haul.state", "")), "its state is broken", nil},
		{"no progress", edit(set("haul.progress", "")), "its progress is broken", nil},
		{"progress", edit(replace("haul.progress", `"updates":4`, `"updates":-1`)), "its progress is broken", nil},
		{"width", edit(replace("haul.config", "hidden_dim: 16", "hidden_dim: 32")), "embed.weight is 16×4 in the file, 32×4 by its settings", []string{"model.hidden_dim=32"}},
		{"a width past any memory", edit(replace("haul.config", "hidden_dim: 16", "hidden_dim: 65536")), "its settings", nil},
		{"missing weight", edit(drop("norm.weight")), "norm.weight is missing", nil},
		{"missing moment", edit(drop("adam_v.norm.weight")), "adam_v.norm.weight is missing", nil},
		{"missing baseline", edit(drop("baseline.norm.weight")), "baseline.norm.weight is missing", nil},
		{"missing costs", edit(drop(nameCosts)), "has 0 costs", nil},
		{"unknown", edit(func(f *safetensors.File) { f.Tensors = append(f.Tensors, safetensors.Float32s("extra", nil, 0)) }), "unknown tensor extra", nil},
		{"type", edit(func(f *safetensors.File) {
			drop("norm.bias")(f)
			f.Tensors = append(f.Tensors, safetensors.Float64s("norm.bias", make([]float64, 16), 16))
		}), "norm.bias is F64", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := filepath.Join(filepath.Dir(path), run.LastName)
			if err := os.WriteFile(bad, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			o := options(tiny(t, append(c.sets, "training.num_epochs=1")...), openCPU(t, 1))
			o.Dir, o.Resume = runtest.OpenDir(t, filepath.Dir(path), true), true
			err := run.Run(t.Context(), o)
			o.Dir.Close()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), bad) {
				t.Errorf("got %v; want one line with the path and %q", err, c.want)
			}
		})
	}
}

// full is a disk with a limited number of free bytes.
type full struct {
	w    io.Writer
	room int
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		n, _ := f.w.Write(p[:f.room])
		f.room = 0
		return n, errFull
	}
	f.room -= len(p)
	return f.w.Write(p)
}

func TestFullDiskKeepsTheOldFile(t *testing.T) {
	path, f := saved(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, 8, 1000, len(before) - 1} {
		err := run.WriteAtomic(path, func(w io.Writer) error { return safetensors.Write(&full{w, room}, f) })
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), path) {
			t.Errorf("%d bytes of room: %v", room, err)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%d bytes of room: the old file has changed (%v)", room, err)
		}
		if _, err := os.Stat(path + ".tmp"); err == nil {
			t.Error("a temporary file was left")
		}
	}
}

// TestUnwritableCheckpoint puts a folder where a checkpoint must go.
func TestUnwritableCheckpoint(t *testing.T) {
	o := options(tiny(t), openCPU(t, 1))
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	if err := os.Mkdir(o.Dir.Last(), 0o755); err != nil {
		t.Fatal(err)
	}
	err := run.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), run.LastName) {
		t.Errorf("got %v", err)
	}
}

func TestRunFolders(t *testing.T) {
	root := t.TempDir()
	a, err := run.NewDir(root, "quick")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := run.NewDir(root, "quick")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(a.Path()) != "quick-001" || filepath.Base(b.Path()) != "quick-002" {
		t.Errorf("folders %s and %s", a.Path(), b.Path())
	}
	if err := os.WriteFile(b.Last(), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Close()
	for _, c := range []struct {
		name, path    string
		resume, force bool
		want          string // "" opens
	}{
		{"taken", b.Path(), false, false, "continue it with --resume"},
		{"no run", root, false, false, "holds no run"},
		{"in use", a.Path(), true, false, "in use by another run"},
		{"in use, forced", a.Path(), false, true, "in use by another run"},
		{"nothing to resume", filepath.Join(root, "none"), true, false, "does not exist"},
		{"resume", b.Path(), true, false, ""},
		{"below a file", filepath.Join(b.Last(), "sub"), false, false, "run folder"},
		{"force", b.Path(), false, true, ""},
		{"nested", filepath.Join(root, "x", "y"), false, false, ""},
	} {
		d, err := run.OpenDir(c.path, c.resume, c.force)
		if err == nil {
			d.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := os.Remove(b.Last()); err != nil { // --force has destroyed nothing
		t.Error(err)
	}
	o := options(tiny(t), openCPU(t, 1))
	o.Dir, o.Resume = runtest.OpenDir(t, b.Path(), true), true
	if err := run.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "nothing to resume") {
		t.Errorf("a folder without a checkpoint: %v", err)
	}
}

// TestACheckpointsSizesAreNotBelieved: settings that ask for far more than the file holds are
// refused by its shapes, before memory is taken.
func TestACheckpointsSizesAreNotBelieved(t *testing.T) {
	path, f := saved(t)
	config := strings.Replace(f.Metadata["haul.config"], "hidden_dim: 16", "hidden_dim: 16384", 1)
	f.Metadata["haul.config"] = strings.Replace(config, "num_layers: 1", "num_layers: 60", 1)
	err := run.WriteAtomic(path, func(w io.Writer) error { return safetensors.Write(w, f) })
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = policy.Load(openCPU(t, 1), path)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "embed.weight is 16×4 in the file, 16384×4 by its settings") {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<28 {
		t.Errorf("%d bytes were taken for it", took)
	}
}
