package train

import (
	"encoding/json"
	"fmt"
	"io"

	"haul/internal/config"
	"haul/internal/env/darkroom"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/safetensors"
)

// adProgress is where an agent's run stands, beside its weights.
type adProgress struct {
	Iteration int           `json:"iteration"` // updates done
	Concluded int           `json:"concluded"` // the iteration up to which tests and evaluations that were due are done
	Room      darkroom.Room `json:"room"`
	Histories string        `json:"histories"` // checksum of what is learned from
	Device    kernel.State  `json:"device"`
	// Learned are the goals whose histories are learned from: whatever another file holds out, these are not.
	Learned []darkroom.Goal `json:"learned"`

	Sums    kernel.Metrics `json:"sums"`    // since the last report
	Since   int            `json:"since"`   // iterations in them
	Seconds float64        `json:"seconds"` // spent on them
	Waited  float64        `json:"waited"`  // of those, for rows from the host

	Best          *float64 `json:"best"` // lowest loss of actions on held-out goals
	BestIteration int      `json:"best_iteration"`
	Elapsed       float64  `json:"elapsed"` // seconds of iterations, tests and evaluations
}

// adCheckpoint is an agent's run at rest. Weights, M and V are flat, as the layout places them.
type adCheckpoint struct {
	Config        *config.AD
	Device        string
	Progress      adProgress
	Weights, M, V []float32
}

func (c *adCheckpoint) parts() []part {
	return []part{{"", &c.Weights}, {prefixM, &c.M}, {prefixV, &c.V}}
}

// save writes the checkpoint whole or not at all.
func (c *adCheckpoint) save(path string, l *kernel.Layout) error {
	yaml, err := c.Config.YAML()
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	state, err := json.Marshal(c.Progress)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f := &safetensors.File{Metadata: map[string]string{keyFormat: formatVersion, keyModel: ADName,
		keyName: c.Config.Name, keyConfig: string(yaml), keyState: string(state), keyWritten: c.Device}}
	for _, part := range c.parts() {
		appendParams(f, l, part.prefix, *part.flat)
	}
	return writeAtomic(path, func(w io.Writer) error { return safetensors.Write(w, f) })
}

// loadADCheckpoint reads a checkpoint for a run with these settings; nil takes the file's own. Anything amiss is an error of
// one line.
func loadADCheckpoint(path string, run *config.AD) (*adCheckpoint, *model.AD, error) {
	fail := func(err error) (*adCheckpoint, *model.AD, error) {
		return nil, nil, fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	f, err := safetensors.Load(path)
	if err != nil {
		return fail(err)
	}
	c, err := decodeADMetadata(f)
	if err != nil {
		return fail(err)
	}
	if run == nil {
		run = c.Config
	}
	m, err := newAgentModel(run, c.Progress.Room.Size)
	if err != nil {
		return fail(err)
	}
	want := map[string]bool{}
	for _, part := range c.parts() {
		if *part.flat, err = readParams(f, m.Layout(), part.prefix, want); err != nil {
			return fail(fmt.Errorf("%w%s", err, agentDiff(c.Config, run)))
		}
	}
	if err := noOthers(f, want); err != nil {
		return fail(fmt.Errorf("%w%s", err, agentDiff(c.Config, run)))
	}
	return c, m, nil
}

func decodeADMetadata(f *safetensors.File) (*adCheckpoint, error) {
	if err := checkKind(f, ADName); err != nil {
		return nil, err
	}
	cfg, err := config.ParseAD(f.Metadata[keyName], []byte(f.Metadata[keyConfig]), nil)
	if err != nil {
		return nil, fmt.Errorf("its settings: %w", err)
	}
	c := &adCheckpoint{Config: cfg, Device: f.Metadata[keyWritten]}
	p := &c.Progress
	if err := json.Unmarshal([]byte(f.Metadata[keyState]), p); err != nil {
		return nil, fmt.Errorf("its run state is broken: %w", err)
	}
	if err := takeOld(f.Metadata[keyState], &p.Device, &p.Sums); err != nil {
		return nil, fmt.Errorf("its run state is broken: %w", err)
	}
	if p.Iteration < 0 || p.Concluded > p.Iteration || p.Since < 0 || p.Since > p.Iteration {
		return nil, fmt.Errorf("its run state is broken: iteration %d, %d of them not reported", p.Iteration, p.Since)
	}
	if err := p.Room.Check(); err != nil {
		return nil, fmt.Errorf("its run state is broken: %w", err)
	}
	return c, nil
}

// agentDiff names the model's keys in which two settings differ.
func agentDiff(f, r *config.AD) string {
	return differing([]sameKey{
		{"tf_n_embd", f.NEmbd == r.NEmbd},
		{"tf_n_head", f.NHead == r.NHead},
		{"tf_n_layer", f.NLayer == r.NLayer},
		{"tf_dim_feedforward", f.FeedForward() == r.FeedForward()},
		{"n_transit", f.NTransit == r.NTransit},
	})
}

// sameAgentRun refuses to continue a run under other settings. Those that no weight depends on may change, and the number of iterations:
// the schedule then aims for its new end.
func sameAgentRun(file, run *config.AD) error {
	a, b := *file, *run
	a.TrainTimesteps = b.TrainTimesteps
	a.NumWorkers, a.Prefetch = b.NumWorkers, b.Prefetch
	a.SummaryInterval, a.EvalInterval, a.GenInterval, a.CkptInterval = b.SummaryInterval, b.EvalInterval, b.GenInterval, b.CkptInterval
	a.TestBatchSize = b.TestBatchSize
	a.EvalEpisodes, a.EvalAgents, a.EvalTemperature = b.EvalEpisodes, b.EvalAgents, b.EvalTemperature
	return sameText(&a, &b)
}
