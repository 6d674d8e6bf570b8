package run_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/safetensors"
)

// TestFlipsInACheckpoint: Load notices each of 10,000 flipped bits of a checkpoint, also in its
// settings, progress and moments.
func TestFlipsInACheckpoint(t *testing.T) {
	c := toySettings(t, "training.num_epochs=1")
	o := toyOptions(c)
	path := filepath.Join(t.TempDir(), "a")
	o.Dir, o.Listener = runtest.OpenDir(t, path, false), report.Silent{}
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(path, run.LastName))
	if err != nil {
		t.Fatal(err)
	}
	ck, err := run.Decode("a", "", text)
	if err != nil || !ck.Summed {
		t.Fatalf("%+v, %v", ck, err)
	}
	random := rand.New(rand.NewSource(1))
	flips := min(10_000, 8*len(text))
	if testing.Short() {
		flips = 1000
	}
	for range flips {
		at, by := random.Intn(len(text)), byte(1)<<random.Intn(8)
		text[at] ^= by
		if _, err := run.Decode("a", "", text); err == nil {
			t.Errorf("byte %d of %d is changed by %#x: it is read", at, len(text), by)
		}
		text[at] ^= by
	}
}

// TestACheckpointLargerThanMemory: a checkpoint whose tensors exceed the memory is refused before
// they are read. The test's file is sparse.
func TestACheckpointLargerThanMemory(t *testing.T) {
	c := toySettings(t, "training.num_epochs=1")
	o := toyOptions(c)
	path := filepath.Join(t.TempDir(), "a")
	o.Dir, o.Listener = runtest.OpenDir(t, path, false), report.Silent{}
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, known := run.AvailableMemory(); !known {
		t.Skip("this system does not tell how much memory is available")
	}
	last := filepath.Join(path, run.LastName)
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(text)
	header := map[string]any{}
	if err := json.Unmarshal(text[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	size := int64(len(text)) - 8 - int64(n)
	const more = 4 << 42
	header["zz"] = map[string]any{"dtype": "F32", "shape": []int64{more / 4}, "data_offsets": []int64{size, size + more}}
	wide, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	out := append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(wide))), wide...), text[8+n:]...)
	if err := os.WriteFile(last, out, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(last, int64(len(out))+more); err != nil {
		t.Skip("the disk has no sparse files of this size: ", err)
	}
	if _, err := run.Load(last, ""); err == nil || !strings.Contains(err.Error(), "its tensors take") || !strings.Contains(err.Error(), "of memory") {
		t.Errorf("%v", err)
	}
}

// TestAWeightThatIsNoNumber: weights that are NaN or infinite are refused when they are read, with
// what to do, by a file without a sum too.
func TestAWeightThatIsNoNumber(t *testing.T) {
	layout := &kernel.Layout{}
	layout.Add("w", kernel.InitZero, 1, 3)
	c := toySettings(t, "training.num_epochs=1")
	o := toyOptions(c)
	path := filepath.Join(t.TempDir(), "a")
	o.Dir, o.Listener = runtest.OpenDir(t, path, false), report.Silent{}
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Load(filepath.Join(path, run.LastName))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{0, math.NaN(), math.Inf(-1)} {
		f.Tensors = []safetensors.Tensor{safetensors.Float32s("w", []float32{1, float32(x), 2}, 3)}
		var b bytes.Buffer
		if err := safetensors.Write(&b, f); err != nil {
			t.Fatal(err)
		}
		ck, err := run.Decode("a", "", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ck.Weights(layout, ""); (err == nil) != (x == 0) || err != nil && (!strings.Contains(err.Error(), "weight 1 of w is") || strings.Contains(err.Error(), "learning rate")) {
			t.Errorf("%v: %v", x, err)
		}
	}
}
