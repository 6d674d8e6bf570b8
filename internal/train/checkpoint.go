package train

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/safetensors"
)

// What a reader could break: a checkpoint is all that a run continues from. Whatever a step, a schedule
// or a baseline reads must be in it. Numbers in the metadata are JSON, which Go writes with as many
// digits as bring every finite float64 back bit for bit.

// formatVersion is raised when a file of before can no longer be read as it stands.
const formatVersion = "1"

// Keys of the metadata.
const (
	keyFormat  = "haul.format" // the version
	keyModel   = "haul.model"
	keyName    = "haul.config_name"
	keyConfig  = "haul.config" // YAML, every key
	keyState   = "haul.state"  // JSON of progress
	keyWritten = "haul.device" // where it was written
)

// Prefixes of tensors beside the policy's own parameters, and the baseline's costs on its evaluation set.
const (
	prefixM        = "adam_m."
	prefixV        = "adam_v."
	prefixBaseline = "baseline."
	nameCosts      = "run.baseline_costs"
)

// progress is where a run stands, beside its weights.
type progress struct {
	Epoch   int            `json:"epoch"` // epochs finished
	Step    int            `json:"step"`  // steps taken in the epoch under way
	Device  kernel.State   `json:"device"`
	Sums    kernel.Metrics `json:"sums"`    // of the epoch's steps so far
	Seconds float64        `json:"seconds"` // spent on them

	Temperature float64   `json:"temperature"` // adaptive only
	Window      []float64 `json:"window"`      // validations the temperature looks at

	Best      *float64 `json:"best"` // lowest validation CPC
	BestEpoch int      `json:"best_epoch"`
	StopBest  *float64 `json:"stop_best"` // early stopping's mark, and validations since
	StopCount int      `json:"stop_count"`
	Stopped   bool     `json:"stopped"`

	Elapsed float64 `json:"elapsed"` // seconds of finished epochs, validation included
}

// checkpoint is a run at rest. Weights, M, V and Frozen are flat, as the layout places them; Frozen and
// BaseCosts are nil unless the baseline is a rollout.
type checkpoint struct {
	Config        *config.Config
	Device        string
	Progress      progress
	Weights, M, V []float32
	Frozen        []float32
	BaseCosts     []float64
}

// save writes the checkpoint whole or not at all.
func (c *checkpoint) save(path string, l *kernel.Layout) error {
	file, err := c.encode(l)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeAtomic(path, func(w io.Writer) error { return safetensors.Write(w, file) })
}

func (c *checkpoint) encode(l *kernel.Layout) (*safetensors.File, error) {
	yaml, err := c.Config.YAML()
	if err != nil {
		return nil, err
	}
	state, err := json.Marshal(c.Progress)
	if err != nil {
		return nil, err
	}
	f := &safetensors.File{Metadata: map[string]string{keyFormat: formatVersion, keyModel: ModelName,
		keyName: c.Config.Name, keyConfig: string(yaml), keyState: string(state), keyWritten: c.Device}}
	for _, part := range c.parts() {
		if *part.flat == nil {
			continue
		}
		appendParams(f, l, part.prefix, *part.flat)
	}
	if c.BaseCosts != nil {
		f.Tensors = append(f.Tensors, safetensors.Float64s(nameCosts, c.BaseCosts, len(c.BaseCosts)))
	}
	return f, nil
}

type part struct {
	prefix string
	flat   *[]float32
}

func (c *checkpoint) parts() []part {
	return []part{{"", &c.Weights}, {prefixM, &c.M}, {prefixV, &c.V}, {prefixBaseline, &c.Frozen}}
}

// loadCheckpoint reads a checkpoint for a run with these settings; nil takes the file's own. Anything
// amiss is an error of one line.
func loadCheckpoint(path string, run *config.Config) (*checkpoint, *kernel.Layout, error) {
	fail := func(err error) (*checkpoint, *kernel.Layout, error) {
		return nil, nil, fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	f, err := safetensors.Load(path)
	if err != nil {
		return fail(err)
	}
	c, err := decodeMetadata(f)
	if err != nil {
		return fail(err)
	}
	if run == nil {
		run = c.Config
	}
	m, err := newModel(run)
	if err != nil {
		return fail(err)
	}
	l := m.Layout()
	want := map[string]bool{}
	for _, part := range c.parts() {
		if part.prefix == prefixBaseline && c.Config.Baseline.Type != config.BaselineRollout {
			continue
		}
		var err error
		if *part.flat, err = readParams(f, l, part.prefix, want); err != nil {
			return fail(fmt.Errorf("%w%s", err, modelDiff(c.Config, run)))
		}
	}
	if t, ok := f.Tensor(nameCosts); ok && c.Frozen != nil {
		want[nameCosts] = true
		c.BaseCosts = make([]float64, len(t.Data)/8)
		if err := t.ReadFloat64s(c.BaseCosts); err != nil {
			return fail(err)
		}
	}
	if n := evalCount(c.Config); c.Frozen != nil && len(c.BaseCosts) != n {
		return fail(fmt.Errorf("%s has %d costs, the evaluation set has %d instances", nameCosts, len(c.BaseCosts), n))
	}
	if err := noOthers(f, want); err != nil {
		return fail(fmt.Errorf("%w%s", err, modelDiff(c.Config, run)))
	}
	return c, l, nil
}

func decodeMetadata(f *safetensors.File) (*checkpoint, error) {
	if err := checkKind(f, ModelName); err != nil {
		return nil, err
	}
	cfg, err := config.Parse(f.Metadata[keyName], []byte(f.Metadata[keyConfig]), nil)
	if err != nil {
		return nil, fmt.Errorf("its settings: %w", err)
	}
	c := &checkpoint{Config: cfg, Device: f.Metadata[keyWritten]}
	if err := json.Unmarshal([]byte(f.Metadata[keyState]), &c.Progress); err != nil {
		return nil, fmt.Errorf("its run state is broken: %w", err)
	}
	if err := takeOld(f.Metadata[keyState], &c.Progress.Device, &c.Progress.Sums); err != nil {
		return nil, fmt.Errorf("its run state is broken: %w", err)
	}
	if p := &c.Progress; p.Epoch < 0 || p.Step < 0 || p.Step > cfg.Training.NumBatchesPerEpoch {
		return nil, fmt.Errorf("its run state is broken: epoch %d, step %d", p.Epoch, p.Step)
	}
	return c, nil
}

// checkKind refuses a file that is no checkpoint of the model.
func checkKind(f *safetensors.File, model string) error {
	version, ok := f.Metadata[keyFormat]
	switch {
	case !ok:
		return fmt.Errorf("a safetensors file, but no Haul checkpoint: its metadata has no %s", keyFormat)
	case version != formatVersion:
		return fmt.Errorf("format version %s, this build reads %s", version, formatVersion)
	case f.Metadata[keyModel] != model:
		return fmt.Errorf("it holds model %q, not %s", f.Metadata[keyModel], model)
	}
	return nil
}

// appendParams adds a flat buffer to a file, a tensor a parameter.
func appendParams(f *safetensors.File, l *kernel.Layout, prefix string, flat []float32) {
	for _, p := range l.Params {
		f.Tensors = append(f.Tensors, safetensors.Float32s(prefix+p.Name, flat[p.Offset:][:p.Len()], p.Shape...))
	}
}

// readParams reads what appendParams wrote and marks its tensors as wanted.
func readParams(f *safetensors.File, l *kernel.Layout, prefix string, want map[string]bool) ([]float32, error) {
	flat := make([]float32, l.Len)
	for _, p := range l.Params {
		want[prefix+p.Name] = true
		if err := readParam(f, prefix+p.Name, p, flat[p.Offset:][:p.Len()]); err != nil {
			return nil, err
		}
	}
	return flat, nil
}

// noOthers refuses tensors that nobody wanted.
func noOthers(f *safetensors.File, want map[string]bool) error {
	for _, t := range f.Tensors {
		if !want[t.Name] {
			return fmt.Errorf("unknown tensor %s", t.Name)
		}
	}
	return nil
}

// readParam copies one parameter, if the file has it in the layout's shape.
func readParam(f *safetensors.File, name string, p kernel.Param, dst []float32) error {
	t, ok := f.Tensor(name)
	if !ok {
		return fmt.Errorf("%s is missing", name)
	}
	if !slices.Equal(t.Shape, p.Shape) {
		return fmt.Errorf("%s is %s in the file, %s in this run", name, shapeText(t.Shape), shapeText(p.Shape))
	}
	return t.ReadFloat32s(dst)
}
