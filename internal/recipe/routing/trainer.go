package routing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/safetensors"
)

// Names of tensors in a checkpoint: the frozen policy's parameters and its costs on the evaluation
// sets.
const (
	prefixBaseline = "baseline."
	nameCosts      = "run.baseline_costs"
)

// keyBatch is the setting that the memory of the programs grows with. keyParts is the setting that
// divides the programs into parts.
const (
	keyBatch = "training.batch_size"
	keyParts = "training.gradient_parts"
)

// state is the recipe's own part of a checkpoint's state.
type state struct {
	Temperature float64   `json:"temperature"` // adaptive only
	Window      []float64 `json:"window"`      // the validations that the temperature depends on
	StopBest    *float64  `json:"stop_best"`   // best validation for early stopping
	StopCount   int       `json:"stop_count"`
}

// trainer trains GT+RL and GAT+RL. An update is one step on one batch. EndInterval closes an epoch.
type trainer struct {
	*run.Setup
	cfg    *config.Config
	model  *model.Network
	shard  int
	policy kernel.Store
	step   kernel.Runner
	frozen *frozen      // rollout baseline only
	mean   *run.Average // training_advanced.average_decay only
	val    []*judged    // one validation set per end of the range of sizes; one for a single size
	at     state
	view   *view
	began  time.Time // start of this process's first epoch
	epochs int       // epochs finished by this process
	lost   bool      // whether a collapse has been noted
}

func newTrainer(s *run.Setup) (*trainer, error) {
	own := *s.Settings.(*config.Config) // a copy, since the number of parts belongs to this run
	cfg := &own
	s.Settings = cfg
	t := &trainer{Setup: s, cfg: cfg, at: state{Temperature: cfg.Advanced.TempStart}}
	var err error
	if t.model, err = policy.NewNetwork(cfg); err != nil {
		return nil, err
	}
	if cfg.Training.GradientParts, err = s.Fit(partsOf(cfg, s.Device), t.try); err != nil {
		return nil, err
	}
	return t, nil
}

// partsOf returns the limits for dividing a step into parts.
func partsOf(c *config.Config, dev kernel.Device) run.Parts {
	p := run.Parts{Key: keyParts, Asked: c.Training.GradientParts, Batch: c.Training.BatchSize, Unit: c.Baseline.Symmetries}
	if p.Asked == 0 && c.Baseline.Type == config.BaselineEMA && dev.ShardSize(1) == kernel.WholeBatch {
		p.Asked = 1 // a GPU cannot take this baseline's mean over all instances of a step in several parts
	}
	return p
}

// try compiles steps of the given number of parts. It closes what was compiled before.
func (t *trainer) try(parts int) error {
	t.cfg.Training.GradientParts = parts
	err := t.release()
	if err == nil {
		if err = t.compile(); err != nil {
			err = errors.Join(err, t.release())
		}
	}
	return err
}

// release closes everything that was compiled.
func (t *trainer) release() error {
	err := t.Close()
	t.policy, t.step, t.frozen, t.mean, t.val = nil, nil, nil, nil, nil
	return err
}

// compile allocates weights and programs. It returns an error if they do not fit into memory.
func (t *trainer) compile() error {
	l, rollout := t.model.Layout(), t.cfg.Baseline.Type == config.BaselineRollout
	var err error
	if t.policy, err = run.NewStore(t.Device, l, true); err != nil {
		return err
	}
	sets := []kernel.Store{t.policy}
	if rollout {
		t.frozen = &frozen{}
		if t.frozen.store, err = run.NewStore(t.Device, l, false); err != nil {
			return err
		}
		sets = append(sets, t.frozen.store)
	}
	shown := t.policy
	if d := t.cfg.Advanced.AverageDecay; d > 0 {
		if t.mean, err = run.NewAverage(t.Device, l, d); err != nil {
			return err
		}
		shown = t.mean.Store
	}
	if err := t.compileSteps(sets); err != nil {
		return err
	}
	for _, c := range ends(t.cfg) {
		if rollout {
			e, err := policy.NewEvaluator(t.Device, t.model, t.policy, evalSet(c, len(ends(t.cfg)), t.World))
			if err != nil {
				return err
			}
			t.frozen.evals = append(t.frozen.evals, e)
		}
		e, err := policy.NewEvaluator(t.Device, t.model, shown, policy.EvalOptions{Source: policy.SourceOf(c, rng.ValidInstances),
			Count: c.Training.ValidationInstances, Decode: policy.ValidationDecode(c), Validate: c.Experiment.StrictValidation, World: t.World, Parts: c.Training.GradientParts})
		if err != nil {
			return err
		}
		t.val = append(t.val, &judged{cfg: c, eval: e})
	}
	return run.FitsCompiled(keyBatch, t.Device, "the run", t.cfg.Training.BatchSize, t.Memory())
}

// compileSteps records and compiles the step, or one step for each size.
func (t *trainer) compileSteps(sets []kernel.Store) error {
	sizes := t.cfg.Problem.Ladder()
	l := &multiSizeStep{seed: t.cfg.Experiment.RandomSeed, batch: uint64(t.cfg.Training.BatchSize), most: t.cfg.Problem.NumCustomers()}
	for _, n := range sizes {
		c := t.cfg.Of(n)
		p, err := recordStep(t.Device, t.model, c, t.World.Peer())
		if err != nil && len(sizes) > 1 {
			return fmt.Errorf("steps of %d customers: %w", n, err)
		}
		if err != nil {
			return err
		}
		prog := p.Program()
		t.shard = p.B()
		if len(l.programs) == 0 {
			t.TellParts(keyParts, c.Training.GradientParts, prog)
		}
		r, err := run.Compile(keyBatch, p, t.Device, sets...)
		if err != nil {
			return err
		}
		if len(sizes) == 1 {
			t.step = r
			return nil
		}
		l.programs = append(l.programs, &sizeProgram{Runner: r, customers: n, own: prog.Batch * prog.Share.Runs(),
			work: func(instances, decodes int64) int64 { return stepFLOPs(t.model, c, instances, decodes) }})
		t.step = l
	}
	return nil
}

// judged is a validation or test set of instances of one size.
type judged struct {
	cfg  *config.Config // the settings for that size
	eval *policy.Evaluator
	refs *policy.References
}

// ends returns the settings of the sizes to validate: the smallest and the largest, or the only
// one.
func ends(c *config.Config) []*config.Config {
	low, high := c.Problem.Customers[0], c.Problem.Customers[1]
	if low == high {
		return []*config.Config{c}
	}
	return []*config.Config{c.Of(low), c.Of(high)}
}

func (t *trainer) Layout() *kernel.Layout { return t.model.Layout() }
func (t *trainer) Runner() kernel.Runner  { return t.step }
func (t *trainer) State() any             { return &t.at }
func (t *trainer) RateKey() string        { return "training.learning_rate" }
func (t *trainer) Waited() float64        { return 0 }
func (t *trainer) Initial() []float32 {
	return model.Initial(t.model.Layout(), t.cfg.Experiment.RandomSeed)
}

func (t *trainer) Sets() []run.Set {
	sets := []run.Set{{Store: t.policy, Trained: true}}
	if t.frozen != nil {
		sets = append(sets, run.Set{Prefix: prefixBaseline, Store: t.frozen.store})
	}
	if t.mean != nil {
		sets = append(sets, run.Set{Prefix: run.PrefixAverage, Store: t.mean.Store})
	}
	return sets
}

// Shipped returns the averaged weights that are validated and saved, or nil without an average.
func (t *trainer) Shipped() kernel.Store {
	if t.mean == nil {
		return nil
	}
	return t.mean.Store
}

func (t *trainer) Extra() []safetensors.Tensor {
	if t.frozen == nil {
		return nil
	}
	return []safetensors.Tensor{safetensors.Float64s(nameCosts, t.frozen.costs, len(t.frozen.costs))}
}

// Restore loads the baseline's costs, or measures them: at the start of a run the policy is the
// baseline.
func (t *trainer) Restore(ctx context.Context, ck *run.Checkpoint, more bool) error {
	if more {
		t.at.StopCount = 0
		t.noteSchedule(ck.Settings.(*config.Config))
	}
	if t.frozen == nil {
		return nil
	}
	if ck == nil {
		var err error
		t.frozen.costs, err = t.frozen.route(ctx)
		return err
	}
	var err error
	if t.frozen.costs, err = ck.Float64s(nameCosts); err != nil {
		return err
	}
	if n := t.frozen.count(); len(t.frozen.costs) != n {
		return fmt.Errorf("load checkpoint %s: %s has %d costs, the evaluation set has %d instances", ck.Path, nameCosts, len(t.frozen.costs), n)
	}
	return nil
}

// noteSchedule notes the new learning rate of a lengthened run, whose schedule has a new end.
func (t *trainer) noteSchedule(before *config.Config) {
	was, is := learningRate(before, t.epoch()), learningRate(t.cfg, t.epoch())
	if was != is {
		t.Note(fmt.Sprintf("the schedule aims for epoch %d now: the learning rate goes on at %.3g, where the run of %d epochs had come down to %.3g",
			t.cfg.Training.NumEpochs, is, before.Training.NumEpochs, was))
	}
}

// perEpoch returns the number of updates per epoch.
func (t *trainer) perEpoch() int { return t.cfg.Training.NumBatchesPerEpoch }

// epoch returns the number of finished epochs. An epoch whose end was interrupted does not count.
func (t *trainer) epoch() int { return t.Progress.Concluded / t.perEpoch() }

func (t *trainer) Total() int        { return t.perEpoch() * t.cfg.Training.NumEpochs }
func (t *trainer) Next(done int) int { return min(t.Total(), (done/t.perEpoch()+1)*t.perEpoch()) }

func (t *trainer) Place(updates int) string {
	each := t.perEpoch()
	if updates > t.Total() { // a resumed run that has done more than the settings ask for
		return "after " + report.Plural(int64(updates/each), "epoch")
	}
	return fmt.Sprintf("in epoch %d after step %d of %d", min(t.epoch()+1, t.cfg.Training.NumEpochs), updates-min(t.epoch(), t.cfg.Training.NumEpochs-1)*each, each)
}

// referenceShare is the fraction of a limited time that may be used before the first step.
const referenceShare = 1. / 40

// within returns a share of the time that the run has left, or 0 if its time is not limited.
func (t *trainer) within(share float64) time.Duration {
	if t.Until.IsZero() {
		return 0
	}
	return max(1, time.Duration(share*float64(time.Until(t.Until))))
}

// Prepare solves the validation sets and caches the solutions for all runs. In a run with a time
// limit it uses only a share of the time, and leaves the rest to training.
func (t *trainer) Prepare(ctx context.Context) (err error) {
	began := time.Now()
	for _, v := range t.val {
		o := v.eval.Options()
		v.refs, err = policy.SharedReference(ctx, t.World, o.Source, o.Count, t.Workers, t.within(referenceShare/float64(len(t.val))), t.Note)
		if err != nil {
			return err
		}
	}
	t.began = time.Now()
	t.view.total.references = t.began.Sub(began).Seconds()
	return nil
}

// Begin sets the schedules of the current epoch.
func (t *trainer) Begin() error {
	return t.step.SetControl(t.at.control(t.cfg, t.epoch()))
}

// Update runs one step.
func (t *trainer) Update(ctx context.Context) error {
	err := t.step.Run()
	if errors.Is(err, kernel.ErrStopped) {
		return ctx.Err()
	}
	return err
}

// Abandon aborts the current step.
func (t *trainer) Abandon() { run.Stop(t.step) }

func (t *trainer) Memory() int64 {
	n := t.step.Memory()
	for _, v := range t.val {
		n += v.eval.Memory()
	}
	if t.frozen != nil {
		for _, e := range t.frozen.evals {
			n += e.Memory()
		}
	}
	return n
}

func (t *trainer) Close() error {
	var errs []error
	if t.step != nil {
		errs = append(errs, t.step.Close())
	}
	for _, v := range t.val {
		errs = append(errs, v.eval.Close())
	}
	if t.frozen != nil {
		for _, e := range t.frozen.evals {
			errs = append(errs, e.Close())
		}
		errs = append(errs, run.CloseStores(t.frozen.store))
	}
	if t.mean != nil {
		errs = append(errs, run.CloseStores(t.mean.Store))
	}
	return errors.Join(append(errs, run.CloseStores(t.policy))...)
}

// Describe fills in the recipe's part of the run's description.
func (t *trainer) Describe(i *report.Info) {
	c := t.cfg
	t.view = &view{info: i, cfg: c, shard: t.shard, done: t.Progress.Updates - t.epoch()*t.perEpoch()}
	sizes := c.Problem.Ladder()
	for _, size := range sizes { // the mean over the sizes, which are equally likely
		own := c.Of(size)
		n, routes := int64(size), int64(c.Training.BatchSize*own.Starts())
		t.view.flops += stepFLOPs(t.model, own, int64(c.Training.BatchSize), routes*(n+(n+4)/5)) / int64(len(sizes))
	}
	i.View, i.Tables, i.At = t.view, tables(c), t.epoch()
	i.Done = fmt.Sprintf("%s and %s", report.Plural(int64(i.At), "epoch"), report.Plural(int64(t.view.done), "step"))
}
