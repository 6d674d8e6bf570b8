package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/safetensors"
)

// A checkpoint holds everything that an update, a schedule or a baseline reads, because a resumed
// run reads nothing else. Numbers in the metadata are JSON. Go writes a float64 with enough digits
// to restore every bit.

// formatVersion is raised when a version of the program can no longer read older files.
const formatVersion = "2"

// Keys of the metadata.
const (
	keyFormat    = "haul.format" // the version
	keyModel     = "haul.model"  // the recipe
	keyName      = "haul.config_name"
	keyConfig    = "haul.config"    // YAML of all settings that have an effect
	keyProgress  = "haul.progress"  // JSON of Progress
	keyState     = "haul.state"     // JSON of Trainer.State
	keyWritten   = "haul.device"    // the device that wrote the file
	keyPrecision = "haul.precision" // precision of matrix products on that device
)

// Prefixes of the names of the trained set's moments.
const (
	prefixM = "adam_m."
	prefixV = "adam_v."
)

// Progress is the state of a run besides its weights and the state of its recipe.
type Progress struct {
	Updates   int          `json:"updates"`   // completed
	Concluded int          `json:"concluded"` // the last update whose tests, reports and checkpoints are complete
	Device    kernel.State `json:"device"`

	// Sums since the last report.
	Since   int            `json:"since"` // updates
	Sums    kernel.Metrics `json:"sums"`
	Seconds float64        `json:"seconds"`
	Waited  float64        `json:"waited"` // part of Seconds spent waiting for data from the host

	Recorded map[string]int `json:"told"` // number of records so far, by kind

	Began []Past `json:"began,omitempty"` // earlier runs, oldest first; empty if the run began with its recipe's initial weights

	Best    *float64 `json:"best"`    // the lowest validation figure; nil: none yet
	BestAt  int      `json:"best_at"` // updates up to the weights with that figure
	Stopped bool     `json:"stopped"` // the recipe ended the run before its last update
	Elapsed float64  `json:"elapsed"` // seconds of updates and of the work between them, over all restarts
}

// Better records the validation figure of the present weights and reports whether it is the lowest
// so far.
func (p *Progress) Better(figure float64) bool {
	if p.Best != nil && figure >= *p.Best {
		return false
	}
	p.Best, p.BestAt = &figure, p.Updates
	return true
}

// Checkpoint is a checkpoint file in memory.
type Checkpoint struct {
	Path      string
	Settings  config.Settings
	Device    string // the device that wrote the file
	Precision string // precision of matrix products on that device; "" in old files
	Progress  Progress
	Summed    bool // a checksum was verified; false for old files, which have none
	file      *safetensors.File
	read      sync.Map // names of tensors that were read; the workers of a server read concurrently
}

// Load reads a checkpoint of a recipe; "" accepts any recipe. Its errors are one line each.
func Load(path, recipe string) (*Checkpoint, error) {
	c := &Checkpoint{Path: path}
	f, err := safetensors.LoadChecked(path, func(f *safetensors.File, bytes int64) error {
		c.file = f
		if err := c.decode(recipe); err != nil {
			return err
		}
		return room("its tensors", bytes)
	})
	if err != nil {
		return nil, c.wrap(err)
	}
	c.file, c.Summed = f, f.Summed
	return c, nil
}

// Decode is Load for the content of a file.
func Decode(path, recipe string, text []byte) (*Checkpoint, error) {
	c := &Checkpoint{Path: path}
	f, err := safetensors.Read(bytes.NewReader(text), int64(len(text)))
	if err == nil {
		c.file = f
		err = c.decode(recipe)
	}
	if err != nil {
		return nil, c.wrap(err)
	}
	c.file, c.Summed = f, f.Summed
	return c, nil
}

func (c *Checkpoint) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("load checkpoint %s: %w", c.Path, err)
}

func (c *Checkpoint) decode(recipe string) error {
	meta := c.file.Metadata
	version, ok := meta[keyFormat]
	switch {
	case !ok:
		return fmt.Errorf("a safetensors file, but no Haul checkpoint: its metadata has no %s", keyFormat)
	case version != formatVersion:
		return fmt.Errorf("format version %s, this build reads %s", version, formatVersion)
	case recipe != "" && meta[keyModel] != recipe:
		return fmt.Errorf("it holds model %q, not %s", meta[keyModel], recipe)
	}
	var err error
	if c.Settings, err = config.ParseAny(meta[keyModel], meta[keyName], []byte(meta[keyConfig])); err != nil {
		return fmt.Errorf("its settings: %w", err)
	}
	c.Device, c.Precision = meta[keyWritten], meta[keyPrecision]
	return decodeProgress(meta[keyProgress], &c.Progress)
}

// decodeProgress parses Progress and rejects values that no run can have.
func decodeProgress(text string, p *Progress) error {
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return fmt.Errorf("its progress is broken: %w", err)
	}
	if p.Updates < 0 || p.Concluded < 0 || p.Concluded > p.Updates || p.Since < 0 || p.Since > p.Updates {
		return fmt.Errorf("its progress is broken: %d updates, %d of them concluded, %d not reported", p.Updates, p.Concluded, p.Since)
	}
	for _, b := range p.Began {
		if b.Updates < 0 || b.Rows < 0 || !(b.Seconds >= 0) {
			return fmt.Errorf("its progress is broken: it began with a run of %d updates from %d rows in %g seconds", b.Updates, b.Rows, b.Seconds)
		}
	}
	return nil
}

// State decodes the recipe's state (Trainer.State) into dst.
func (c *Checkpoint) State(dst any) error {
	if err := json.Unmarshal([]byte(c.file.Metadata[keyState]), dst); err != nil {
		return c.wrap(fmt.Errorf("its state is broken: %w", err))
	}
	return nil
}

// Weights reads a set's parameters into one flat buffer in the order of the layout. It compares
// shapes before it allocates, so that wrong settings cannot ask for more memory than the file has.
func (c *Checkpoint) Weights(l *kernel.Layout, prefix string) ([]float32, error) {
	return c.grown(l, prefix, nil)
}

// grown is Weights for a file whose network has fewer inputs than the layout's. For a weight that
// axes names, the file may hold only the beginning along that axis; the rest becomes 0. The larger
// network then computes the same as the smaller one.
func (c *Checkpoint) grown(l *kernel.Layout, prefix string, axes map[string]int) ([]float32, error) {
	tensors := make([]safetensors.Tensor, len(l.Params))
	for i, p := range l.Params {
		name := prefix + p.Name
		c.read.Store(name, true)
		t, ok := c.file.Tensor(name)
		switch {
		case !ok:
			return nil, c.wrap(fmt.Errorf("%s is missing", name))
		case !slices.Equal(t.Shape, p.Shape) && !begins(t.Shape, p.Shape, p.Name, axes):
			return nil, c.wrap(fmt.Errorf("%s is %s in the file, %s by its settings", name, shapeText(t.Shape), shapeText(p.Shape)))
		}
		tensors[i] = t
	}
	flat := make([]float32, l.Len)
	for i, p := range l.Params {
		to := flat[p.Offset:][:p.Len()]
		if slices.Equal(tensors[i].Shape, p.Shape) {
			if err := tensors[i].ReadFloat32s(to); err != nil {
				return nil, c.wrap(err)
			}
			continue
		}
		at := axes[p.Name]
		row, whole := size(tensors[i].Shape[at:]), size(p.Shape[at:])
		part := make([]float32, size(tensors[i].Shape))
		if err := tensors[i].ReadFloat32s(part); err != nil {
			return nil, c.wrap(err)
		}
		for k := range len(part) / row {
			copy(to[k*whole:], part[k*row:(k+1)*row])
		}
	}
	for _, p := range l.Params {
		for k, x := range flat[p.Offset:][:p.Len()] {
			if x-x != 0 {
				return nil, c.wrap(fmt.Errorf("weight %d of %s is %v: the file is damaged, or its training diverged: take another checkpoint", k, prefix+p.Name, x))
			}
		}
	}
	return flat, nil
}

// begins reports whether a tensor of shape part is the beginning of the named weight along its
// axis.
func begins(part, whole []int, name string, axes map[string]int) bool {
	at, may := axes[name]
	if !may || len(part) != len(whole) {
		return false
	}
	for k := range part {
		if k != at && part[k] != whole[k] || k == at && (part[k] < 1 || part[k] > whole[k]) {
			return false
		}
	}
	return true
}

// size returns the number of elements of a shape.
func size(shape []int) int {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return n
}

// noMore returns an error if the file holds weights that the layout lacks, such as further layers.
// Other tensors (moments, a baseline's copy) have a prefix that no name of the layout begins with.
func (c *Checkpoint) noMore(l *kernel.Layout) error {
	asked, words := map[string]bool{}, map[string]bool{}
	first := func(name string) string { word, _, _ := strings.Cut(name, "."); return word }
	for _, p := range l.Params {
		asked[p.Name], words[first(p.Name)] = true, true
	}
	for _, t := range c.file.Tensors {
		if words[first(t.Name)] && !asked[t.Name] {
			return c.wrap(fmt.Errorf("%s is in the file, and the settings have no such weight", t.Name))
		}
	}
	return nil
}

// Float64s reads an extra tensor. It returns nil if the file does not have it.
func (c *Checkpoint) Float64s(name string) ([]float64, error) {
	c.read.Store(name, true)
	t, ok := c.file.Tensor(name)
	if !ok {
		return nil, nil
	}
	out := make([]float64, len(t.Data)/8)
	return out, c.wrap(t.ReadFloat64s(out))
}

// Bare returns the metadata of a checkpoint for inference: settings and progress, without the state
// that only a resumed run needs.
func (c *Checkpoint) Bare() map[string]string {
	p := Progress{Updates: c.Progress.Updates, Concluded: c.Progress.Concluded, Best: c.Progress.Best, BestAt: c.Progress.BestAt, Elapsed: c.Progress.Elapsed,
		Began: c.Progress.Began}
	text, err := json.Marshal(&p)
	if err != nil {
		panic("run: " + err.Error()) // it was decoded from JSON
	}
	meta := map[string]string{keyProgress: string(text), keyState: "null"}
	for _, k := range []string{keyFormat, keyModel, keyName, keyConfig, keyWritten, keyPrecision} {
		if v, ok := c.file.Metadata[k]; ok {
			meta[k] = v
		}
	}
	return meta
}

// noOthers returns an error if the file has tensors that were not read.
func (c *Checkpoint) noOthers() error {
	for _, t := range c.file.Tensors {
		if _, read := c.read.Load(t.Name); !read {
			return c.wrap(fmt.Errorf("unknown tensor %s", t.Name))
		}
	}
	return nil
}

// restore loads a checkpoint's sets and the state of the step into the device.
func (c *Checkpoint) restore(t Trainer) error {
	l := t.Layout()
	for _, s := range t.Sets() {
		w, err := c.Weights(l, s.Prefix)
		if err == nil {
			err = s.Store.WriteWeights(w)
		}
		if err != nil {
			return err
		}
		if !s.Trained {
			continue
		}
		m, err := c.Weights(l, prefixM)
		if err != nil {
			return err
		}
		v, err := c.Weights(l, prefixV)
		if err != nil {
			return err
		}
		if err := s.Store.WriteMoments(m, v); err != nil {
			return err
		}
	}
	return t.Runner().SetState(c.Progress.Device)
}

// begin initializes the device for a new run with the weights w.
func begin(t Trainer, w []float32) error {
	zero := make([]float32, t.Layout().Len)
	for _, s := range t.Sets() {
		if err := s.Store.WriteWeights(w); err != nil {
			return err
		}
		if s.Trained {
			if err := s.Store.WriteMoments(zero, zero); err != nil {
				return err
			}
		}
	}
	return t.Runner().SetState(kernel.State{})
}

// save writes a checkpoint atomically: the old file stays until the new one is complete.
func save(path string, s config.Settings, device kernel.Device, p *Progress, t Trainer, sets []Set, extra []safetensors.Tensor) error {
	f, err := encode(s, device, p, t, sets)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f.Tensors = append(f.Tensors, extra...)
	return WriteAtomic(path, func(w io.Writer) error { return safetensors.Write(w, f) })
}

func encode(s config.Settings, device kernel.Device, p *Progress, t Trainer, sets []Set) (*safetensors.File, error) {
	var err error
	if p.Device, err = t.Runner().State(); err != nil {
		return nil, err
	}
	yaml, err := s.YAML()
	if err != nil {
		return nil, err
	}
	progress, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	state, err := json.Marshal(t.State())
	if err != nil {
		return nil, err
	}
	f := &safetensors.File{Metadata: map[string]string{keyFormat: formatVersion, keyModel: s.Recipe(), keyName: s.Title(), keyConfig: string(yaml),
		keyProgress: string(progress), keyState: string(state), keyWritten: device.Name(), keyPrecision: Precision(device)}}
	l := t.Layout()
	for _, set := range sets {
		flat := make([]float32, l.Len)
		if err := set.Store.ReadWeights(flat); err != nil {
			return nil, err
		}
		appendParams(f, l, set.Prefix, flat)
		if !set.Trained {
			continue
		}
		m, v := make([]float32, l.Len), make([]float32, l.Len)
		if err := set.Store.ReadMoments(m, v); err != nil {
			return nil, err
		}
		appendParams(f, l, prefixM, m)
		appendParams(f, l, prefixV, v)
	}
	return f, nil
}

// appendParams adds a flat buffer to a file, one tensor per parameter.
func appendParams(f *safetensors.File, l *kernel.Layout, prefix string, flat []float32) {
	for _, p := range l.Params {
		f.Tensors = append(f.Tensors, safetensors.Float32s(prefix+p.Name, flat[p.Offset:][:p.Len()], p.Shape...))
	}
}
