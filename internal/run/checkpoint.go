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

// What a reader could break: a checkpoint is all that a run continues from. Whatever an update, a
// schedule or a baseline reads must be in it. Numbers in the metadata are JSON, which Go writes
// with as many digits as bring every finite float64 back bit for bit.

// formatVersion is raised when a file of before can no longer be read as it stands.
const formatVersion = "2"

// Keys of the metadata.
const (
	keyFormat    = "haul.format" // the version
	keyModel     = "haul.model"  // the recipe
	keyName      = "haul.config_name"
	keyConfig    = "haul.config"    // YAML, every key that has an effect
	keyProgress  = "haul.progress"  // JSON of Progress
	keyState     = "haul.state"     // JSON of the recipe's own
	keyWritten   = "haul.device"    // where it was written
	keyPrecision = "haul.precision" // of matrix products there
)

// Prefixes of the trained set's moments.
const (
	prefixM = "adam_m."
	prefixV = "adam_v."
)

// Progress is where a run stands, beside its weights and what its recipe adds.
type Progress struct {
	Updates   int          `json:"updates"`   // done
	Concluded int          `json:"concluded"` // the update up to which everything that was due is done
	Device    kernel.State `json:"device"`

	// Since the last report.
	Since   int            `json:"since"` // updates
	Sums    kernel.Metrics `json:"sums"`
	Seconds float64        `json:"seconds"`
	Waited  float64        `json:"waited"` // of those, for data from the host

	Told map[string]int `json:"told"` // records so far, by kind

	Began []Past `json:"began,omitempty"` // the runs before this one, the first first, where it began with other weights than its recipe's

	Best    *float64 `json:"best"`    // the lowest figure that weights were judged by
	BestAt  int      `json:"best_at"` // updates behind those weights
	Stopped bool     `json:"stopped"` // before its end
	Elapsed float64  `json:"elapsed"` // seconds of updates and what followed them, over all restarts
}

// Better takes a figure that the present weights were judged by, lower being better, and says
// whether they are the best so far.
func (p *Progress) Better(figure float64) bool {
	if p.Best != nil && figure >= *p.Best {
		return false
	}
	p.Best, p.BestAt = &figure, p.Updates
	return true
}

// Checkpoint is a run at rest.
type Checkpoint struct {
	Path      string
	Settings  config.Settings
	Device    string // where it was written
	Precision string // of matrix products there; "" in files from before it was kept
	Progress  Progress
	Summed    bool // its bytes are those that were written; false for files from before there were checksums
	file      *safetensors.File
	read      sync.Map // names of tensors that somebody asked for; a server's benches ask side by side
}

// Load reads a checkpoint of a recipe; "" takes any. Anything amiss is an error of one line.
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

// Decode is Load for a file that was read already.
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

// decodeProgress refuses what no run can have.
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

// State reads the recipe's own state.
func (c *Checkpoint) State(dst any) error {
	if err := json.Unmarshal([]byte(c.file.Metadata[keyState]), dst); err != nil {
		return c.wrap(fmt.Errorf("its state is broken: %w", err))
	}
	return nil
}

// Weights reads a set's parameters into one flat buffer, as the layout places them.
// Shapes come first: what the settings say they are is allocated only where the file is as large.
func (c *Checkpoint) Weights(l *kernel.Layout, prefix string) ([]float32, error) {
	return c.grown(l, prefix, nil)
}

// grown is Weights where the file's network may see less than the layout's: of a weight that axes
// names the file may hold the beginning along that axis. What is past it is 0, so that what only
// the layout's network sees changes nothing yet.
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
	return flat, nil
}

// begins: a tensor of shape `part` is the beginning of the weight along its axis.
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

// size is how many numbers a tensor of that shape has.
func size(shape []int) int {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return n
}

// noMore refuses a network that has all that the layout asks for and more, a deeper one: what is no
// weight (moments, a baseline's copy) has a first word that the layout does not know.
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

// Float64s reads an extra tensor; nil where there is none.
func (c *Checkpoint) Float64s(name string) ([]float64, error) {
	c.read.Store(name, true)
	t, ok := c.file.Tensor(name)
	if !ok {
		return nil, nil
	}
	out := make([]float64, len(t.Data)/8)
	return out, c.wrap(t.ReadFloat64s(out))
}

// Bare is the metadata of a checkpoint that is to be used and not continued: its settings and how
// far it came, without the state of the run.
func (c *Checkpoint) Bare() map[string]string {
	p := Progress{Updates: c.Progress.Updates, Concluded: c.Progress.Concluded, Best: c.Progress.Best, BestAt: c.Progress.BestAt, Elapsed: c.Progress.Elapsed,
		Began: c.Progress.Began}
	text, err := json.Marshal(&p)
	if err != nil {
		panic("run: " + err.Error()) // it was read from JSON
	}
	meta := map[string]string{keyProgress: string(text), keyState: "null"}
	for _, k := range []string{keyFormat, keyModel, keyName, keyConfig, keyWritten, keyPrecision} {
		if v, ok := c.file.Metadata[k]; ok {
			meta[k] = v
		}
	}
	return meta
}

// noOthers refuses tensors that nobody asked for.
func (c *Checkpoint) noOthers() error {
	for _, t := range c.file.Tensors {
		if _, read := c.read.Load(t.Name); !read {
			return c.wrap(fmt.Errorf("unknown tensor %s", t.Name))
		}
	}
	return nil
}

// restore puts a checkpoint's sets and the step's state onto the device.
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

// begin puts a run's first state onto the device, with these weights.
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

// save writes where a run stands to a file, whole or not at all, with these weights.
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
