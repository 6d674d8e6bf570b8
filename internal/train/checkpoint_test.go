package train

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/safetensors"
)

// saved trains for one epoch and returns the last checkpoint's path and content.
func saved(t testing.TB, sets ...string) (string, *safetensors.File) {
	t.Helper()
	d := openDir(t, setup(t), false)
	if err := Run(t.Context(), Options{Config: tiny(t, sets...), Device: openCPU(t, 1), Dir: d, Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Load(d.Last())
	if err != nil {
		t.Fatal(err)
	}
	return d.Last(), f
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
	}{
		{"empty", nil, "not a safetensors file"},
		{"text", []byte("epoch 3, all is well, trust me\n"), "not a safetensors file"},
		{"cut in the header", whole[:100], "truncated"},
		{"cut in the data", whole[:len(whole)-5], "truncated"},
		{"longer", append(bytes.Clone(whole), 1), "follow the last tensor"},
		{"foreign", edit(func(f *safetensors.File) { f.Metadata = map[string]string{"format": "pt"} }), "no Haul checkpoint"},
		{"version", edit(set(keyFormat, "7")), "format version 7, this build reads 1"},
		{"model", edit(set(keyModel, "AD")), `model "AD"`},
		{"settings", edit(set(keyConfig, "problem: {num_customer: 3}")), "its settings"},
		{"no state", edit(set(keyState, "")), "run state is broken"},
		{"state", edit(replace(keyState, `"epoch":1`, `"epoch":-1`)), "run state is broken"},
		{"width", edit(replace(keyConfig, "hidden_dim: 16", "hidden_dim: 32")), "embed.weight is 16×4 in the file, 32×4 in this run"},
		{"missing weight", edit(drop("norm.weight")), "norm.weight is missing"},
		{"missing moment", edit(drop("adam_v.norm.weight")), "adam_v.norm.weight is missing"},
		{"missing baseline", edit(drop("baseline.norm.weight")), "baseline.norm.weight is missing"},
		{"missing costs", edit(drop(nameCosts)), "has 0 costs"},
		{"unknown", edit(func(f *safetensors.File) { f.Tensors = append(f.Tensors, safetensors.Float32s("extra", nil, 0)) }), "unknown tensor extra"},
		{"type", edit(func(f *safetensors.File) {
			drop("norm.bias")(f)
			f.Tensors = append(f.Tensors, safetensors.Float64s("norm.bias", make([]float64, 16), 16))
		}), "norm.bias is F64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "x.safetensors")
			if err := os.WriteFile(bad, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, _, err := loadCheckpoint(bad, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), bad) {
				t.Errorf("got %v; want one line with the path and %q", err, c.want)
			}
		})
	}
}

// full is a disk with room for so many bytes.
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
		err := writeAtomic(path, func(w io.Writer) error { return safetensors.Write(&full{w, room}, f) })
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
	d := openDir(t, setup(t), false)
	if err := os.Mkdir(d.Last(), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Options{Config: tiny(t), Device: openCPU(t, 1), Dir: d})
	if err == nil || !strings.Contains(err.Error(), lastName) {
		t.Errorf("got %v", err)
	}
}

func TestRunFolders(t *testing.T) {
	root := t.TempDir()
	a, err := NewDir(root, "quick")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := NewDir(root, "quick")
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
		{"taken", b.Path(), false, false, "--resume"},
		{"in use", a.Path(), true, false, "in use by another run"},
		{"in use, forced", a.Path(), false, true, "in use by another run"},
		{"nothing to resume", filepath.Join(root, "none"), true, false, "does not exist"},
		{"resume", b.Path(), true, false, ""},
		{"below a file", filepath.Join(b.Last(), "sub"), false, false, "run folder"},
		{"force", b.Path(), false, true, ""},
		{"nested", filepath.Join(root, "x", "y"), false, false, ""},
	} {
		d, err := OpenDir(c.path, c.resume, c.force)
		if err == nil {
			d.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := os.Stat(b.Last()); err == nil {
		t.Error("--force left an old checkpoint")
	}
	d := openDir(t, b.Path(), true)
	if err := Run(t.Context(), Options{Device: openCPU(t, 1), Dir: d, Resume: true}); err == nil || !strings.Contains(err.Error(), "nothing to resume") {
		t.Errorf("a folder without a checkpoint: %v", err)
	}
}
