package policy

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/run"
	"haul/internal/safetensors"
)

// tiny returns settings of a network that compiles and runs within milliseconds.
func tiny(t testing.TB, sets ...string) *config.Config {
	t.Helper()
	sets = append([]string{"problem.num_customers=5", "training.num_batches_per_epoch=4", "training.batch_size=12",
		"model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1"}, sets...)
	c, err := config.Load("tiny_1", sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openCPU(t testing.TB, workers int) kernel.Device {
	t.Helper()
	dev, err := device.Open("cpu", device.Options{Workers: workers, Precision: "fp32"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// saved writes a checkpoint with initial weights, as a run does before its first update, and
// returns its path and content.
func saved(t testing.TB, sets ...string) (string, *safetensors.File) {
	t.Helper()
	return savedAs(t, tiny(t, sets...))
}

// tinyGAT is tiny for a graph attention network.
func tinyGAT(t testing.TB, sets ...string) *config.Config {
	t.Helper()
	sets = append([]string{"problem.num_customers=5", "training.num_batches_per_epoch=4", "training.batch_size=12",
		"model_gat.gat_hidden_dim=16", "model.num_heads=2", "model_gat.gat_layers=1", "model_gat.gat_edge_dim=3"}, sets...)
	c, err := config.LoadAny(config.RecipeGAT, "", sets)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*config.Config)
}

// savedAs is saved for any settings.
func savedAs(t testing.TB, c *config.Config) (string, *safetensors.File) {
	t.Helper()
	m, err := NewNetwork(c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	l := m.Layout()
	flat := model.Initial(l, c.Experiment.RandomSeed)
	f := &safetensors.File{Metadata: map[string]string{"haul.format": "2", "haul.model": c.Recipe(), "haul.config_name": c.Title(), "haul.config": string(text),
		"haul.progress": `{"updates": 8, "concluded": 8}`, "haul.state": "null"}}
	for _, p := range l.Params {
		f.Tensors = append(f.Tensors, safetensors.Float32s(p.Name, flat[p.Offset:][:p.Len()], p.Shape...))
	}
	return write(t, f), f
}

func write(t testing.TB, f *safetensors.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.safetensors")
	if err := run.WriteAtomic(path, func(w io.Writer) error { return safetensors.Write(w, f) }); err != nil {
		t.Fatal(err)
	}
	return path
}

func loadSaved(t testing.TB, sets ...string) *Policy {
	t.Helper()
	path, _ := saved(t, sets...)
	p, err := Load(openCPU(t, 2), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLoad: Info of a checkpoint, and errors for files without a policy.
func TestLoad(t *testing.T) {
	path, f := saved(t)
	p, err := Load(openCPU(t, 1), path)
	if err != nil || p.Epoch != 2 || p.Seed != p.Config.Experiment.RandomSeed || p.Parameters() != p.model.Layout().Count() {
		t.Fatalf("%+v, %v", p, err)
	}
	ck, err := run.Load(path, "")
	if err != nil {
		t.Fatal(err)
	}
	info, err := Describe(ck)
	if err != nil || info.Customers != 5 || info.Updates != 8 || info.Instances != 96 || len(info.Runs) != 1 || info.Decode != "pomo8" {
		t.Errorf("%+v, %v", info, err)
	}
	other, err := config.LoadPPO("", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := other.YAML()
	if err != nil {
		t.Fatal(err)
	}
	own := f.Metadata["haul.config"]
	f.Metadata["haul.model"], f.Metadata["haul.config"] = config.RecipePPO, string(text)
	if _, err := Load(openCPU(t, 1), write(t, f)); err == nil || !strings.Contains(err.Error(), `it holds model "PPO", not GT+RL or GAT+RL`) {
		t.Errorf("another recipe's checkpoint: %v", err)
	}
	f.Metadata["haul.model"], f.Metadata["haul.config"], f.Tensors = config.RecipeGT, own, f.Tensors[1:]
	if _, err := Load(openCPU(t, 1), write(t, f)); err == nil || !strings.Contains(err.Error(), "embed.weight is missing") {
		t.Errorf("a checkpoint without a weight: %v", err)
	}
}

// crowded is a device without free memory.
type crowded struct{ kernel.Device }

func (crowded) AvailableMemory() (int64, bool) { return 1000, true }
