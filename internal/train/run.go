package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
)

// Options say what to train, where, and who listens.
type Options struct {
	Config   *config.Config // nil with Resume: the checkpoint's own
	Device   kernel.Device
	Dir      *Dir
	Epochs   int  // in place of training.num_epochs; 0 keeps it
	Resume   bool // continue from Dir.Last
	Workers  int  // cores for solving references; 0: all
	Listener Listener
}

// Run trains until the epochs are over or validation stops gaining, then tests the best policy. Its errors are one line each;
// *Interrupted and *NonFinite are told apart by errors.As.
func Run(ctx context.Context, o Options) (err error) {
	if o.Listener == nil {
		o.Listener = silent{}
	}
	r := &run{Options: o}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	o.Listener.Start(r.info())
	if r.refs, err = Reference(ctx, r.val.o.Source, r.val.o.Count, o.Workers, o.Listener.Note); err != nil {
		return r.interrupted(err)
	}
	r.began = time.Now()
	for r.at.Epoch < r.cfg.Training.NumEpochs && !r.at.Stopped {
		if err := r.epoch(ctx); err != nil {
			return err
		}
	}
	sum, err := r.test(ctx)
	if err != nil {
		return r.interrupted(err)
	}
	o.Listener.Done(sum)
	return nil
}

// Interrupted is the end of a run whose context ended. Its state is saved to the step, not to the epoch.
type Interrupted struct {
	Dir         string
	Epoch       int // under way, from 1; 0 where a run has none
	Step, Steps int // done, and in an epoch
	Cause       error
}

// Error says how to go on.
func (e *Interrupted) Error() string {
	if e.Epoch == 0 {
		return fmt.Sprintf("interrupted after iteration %d of %d; all is saved, continue with --resume %s", e.Step, e.Steps, e.Dir)
	}
	return fmt.Sprintf("interrupted in epoch %d after step %d of %d; all is saved, continue with --resume %s", e.Epoch, e.Step, e.Steps, e.Dir)
}

// Unwrap is the context's error.
func (e *Interrupted) Unwrap() error { return e.Cause }

// NonFinite is the end of a run whose gradient was not finite. Checkpoints are of before.
type NonFinite struct {
	Dir   string
	Epoch int    // 0 where a run has none
	Step  int64  // of the whole run, from 1
	Op    string // the first op whose result was not finite; "" if a replay found none
}

// Error names the op and what is left.
func (e *NonFinite) Error() string {
	op := e.Op
	if op == "" {
		op = "no op of a replay, so in their sum"
	}
	if e.Epoch == 0 {
		return fmt.Sprintf("the gradient of iteration %d is not finite, first in %s; %s holds the last state before it: try a lower lr", e.Step, op, e.Dir)
	}
	return fmt.Sprintf("the gradient of step %d (epoch %d) is not finite, first in %s; %s holds the state before that epoch: try a lower training.learning_rate",
		e.Step, e.Epoch, op, e.Dir)
}

// run is a training run in progress. One goroutine owns it.
type run struct {
	Options
	cfg    *config.Config
	model  *model.GT
	shard  int
	policy kernel.Store
	step   kernel.Runner
	frozen *frozen // rollout baseline only
	val    *evaluator
	refs   *References
	at     progress
	began  time.Time // of this process's first epoch
	epochs int       // that this process has finished
}

// prepare loads or makes the state, compiles the programs and puts a first checkpoint on disk, so that a run can be resumed
// from any moment on and a folder that cannot be written is found out early.
func (r *run) prepare(ctx context.Context) error {
	ck, err := r.start()
	if err != nil {
		return err
	}
	if r.model, err = newModel(r.cfg); err != nil {
		return err
	}
	if err := r.compile(); err != nil {
		return err
	}
	if ck == nil {
		ck = r.initial()
	}
	r.at = ck.Progress
	if err := r.restore(ck); err != nil {
		return err
	}
	if r.frozen != nil && ck.BaseCosts == nil {
		first, err := r.frozen.eval.run(ctx) // the policy is the baseline still
		if err != nil {
			return err
		}
		r.frozen.costs = first.Lengths
	}
	if err := r.Dir.writeConfig(r.cfg); err != nil {
		return err
	}
	if r.Resume {
		return nil
	}
	return r.save(r.Dir.Last())
}

// start settles the settings, and reads the checkpoint of a run that continues.
func (r *run) start() (*checkpoint, error) {
	var ck *checkpoint
	cfg := r.Config
	if r.Resume {
		if _, err := os.Stat(r.Dir.Last()); errors.Is(err, fs.ErrNotExist) {
			return nil, nothingToResume(r.Dir)
		}
		var err error
		if ck, _, err = loadCheckpoint(r.Dir.Last(), cfg); err != nil {
			return nil, err
		}
		if cfg == nil {
			cfg = ck.Config
		} else if err := sameRun(ck.Config, cfg); err != nil {
			return nil, fmt.Errorf("resume %s: %w", r.Dir.Path(), err)
		}
		if now, then := kindOf(r.Device.Name()), kindOf(ck.Device); now != then {
			r.Listener.Note(otherDevice(ck.Device))
		}
	}
	own := *cfg
	if ck != nil {
		own.Name = ck.Config.Name // the run's, whatever file its settings are read from this time
	}
	if r.Epochs > 0 {
		own.Training.NumEpochs = r.Epochs
	}
	if ck != nil && own.Training.NumEpochs > ck.Config.Training.NumEpochs {
		ck.Progress.Stopped, ck.Progress.StopCount = false, 0 // more epochs were asked for
	}
	r.cfg = &own
	return ck, nil
}

func nothingToResume(d *Dir) error {
	return fmt.Errorf("run folder %s holds no %s: there is nothing to resume; start over with --force", d.Path(), lastName)
}

func otherDevice(name string) string {
	return fmt.Sprintf("the checkpoint was written on %s: the run continues from the same state, but only the same kind of device repeats it bit for bit", name)
}

// Precision is what a device makes matrix products in: fp32 unless it says otherwise.
func Precision(dev kernel.Device) string {
	if d, ok := dev.(interface{ Precision() string }); ok {
		return d.Precision()
	}
	return "fp32"
}

// kindOf is a device's name without its number of workers, which changes no result.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ",")
	return kind
}

// initial is the state before the first step.
func (r *run) initial() *checkpoint {
	l := r.model.Layout()
	ck := &checkpoint{Weights: model.Initial(l, r.cfg.Experiment.RandomSeed), M: make([]float32, l.Len), V: make([]float32, l.Len)}
	ck.Frozen = ck.Weights
	ck.Progress = progress{Device: kernel.State{Beta1T: 1, Beta2T: 1}, Temperature: r.cfg.Advanced.TempStart}
	return ck
}

// compile allocates weights and programs, after asking whether there is room.
func (r *run) compile() error {
	l, rollout := r.model.Layout(), r.cfg.Baseline.Type == config.BaselineRollout
	copies := int64(4) // weights, gradient, two moments
	if rollout {
		copies++
	}
	if err := fits(r.Device, "the model", 0, copies*4*int64(l.Len)); err != nil {
		return err
	}
	var err error
	if r.policy, err = r.Device.NewStore(l, true); err != nil {
		return err
	}
	sets := []kernel.Store{r.policy}
	if rollout {
		r.frozen = &frozen{}
		if r.frozen.store, err = r.Device.NewStore(l, false); err != nil {
			return err
		}
		sets = append(sets, r.frozen.store)
	}
	p := recordStep(r.Device, r.model, r.cfg)
	r.shard = p.B()
	if r.step, err = compile(p, r.Device, sets...); err != nil {
		return err
	}
	if rollout {
		if r.frozen.eval, err = newEvaluator(r.Device, r.model, r.policy, evalSet(r.cfg)); err != nil {
			return err
		}
	}
	r.val, err = newEvaluator(r.Device, r.model, r.policy, EvalOptions{Source: SourceOf(r.cfg, rng.ValidInstances),
		Count: r.cfg.Training.ValidationInstances, Decode: Greedy, Judge: r.cfg.Experiment.StrictValidation})
	if err != nil {
		return err
	}
	return fitsCompiled(keyBatch, r.Device, "the run", r.cfg.Training.BatchSize, r.memory())
}

func (r *run) memory() int64 {
	n := r.step.Memory() + r.val.runner.Memory()
	if r.frozen != nil {
		n += r.frozen.eval.runner.Memory()
	}
	return n
}

func (r *run) close() error {
	var errs []error
	if r.step != nil {
		errs = append(errs, r.step.Close())
	}
	if r.val != nil {
		errs = append(errs, r.val.close())
	}
	if r.frozen != nil && r.frozen.eval != nil {
		errs = append(errs, r.frozen.eval.close())
	}
	return errors.Join(errs...)
}

// restore puts a checkpoint onto the device.
func (r *run) restore(ck *checkpoint) error {
	err := firstError(r.policy.WriteWeights(ck.Weights), r.policy.WriteMoments(ck.M, ck.V), r.step.SetState(ck.Progress.Device))
	if r.frozen != nil && err == nil {
		r.frozen.costs = ck.BaseCosts
		err = r.frozen.store.WriteWeights(ck.Frozen)
	}
	return err
}

// save writes where the run stands to a file.
func (r *run) save(path string) error {
	n := r.model.Layout().Len
	ck := &checkpoint{Config: r.cfg, Device: r.Device.Name(), Weights: make([]float32, n), M: make([]float32, n), V: make([]float32, n)}
	var err error
	if r.at.Device, err = r.step.State(); err != nil {
		return err
	}
	ck.Progress = r.at
	if err := firstError(r.policy.ReadWeights(ck.Weights), r.policy.ReadMoments(ck.M, ck.V)); err != nil {
		return err
	}
	if r.frozen != nil {
		ck.Frozen, ck.BaseCosts = make([]float32, n), r.frozen.costs
		if err := r.frozen.store.ReadWeights(ck.Frozen); err != nil {
			return err
		}
	}
	return ck.save(path, r.model.Layout())
}

// interrupted turns the end of the context, at a moment when all is saved, into the error that says how to go on.
func (r *run) interrupted(err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Interrupted{Dir: r.Dir.Path(), Epoch: min(r.at.Epoch+1, r.cfg.Training.NumEpochs), Step: r.at.Step, Steps: r.cfg.Training.NumBatchesPerEpoch, Cause: err}
}

func (r *run) info() Info {
	c := r.cfg
	n := int64(c.Problem.NumCustomers)
	routes := int64(c.Training.BatchSize * c.Starts())
	var paths []string
	if t, ok := r.step.(kernel.Teller); ok {
		paths = t.Paths()
	}
	return Info{Name: c.Name, Model: ModelName, Parameters: r.model.Layout().Count(), Device: r.Device.Name(), Precision: Precision(r.Device),
		Paths: paths, Memory: r.memory(), Customers: c.Problem.NumCustomers, Batch: c.Training.BatchSize, Shard: r.shard, Starts: c.Starts(),
		Baseline: c.Baseline.Type, Steps: c.Training.NumBatchesPerEpoch, Epochs: c.Training.NumEpochs,
		StepFLOPs: stepFLOPs(r.model, c, int64(c.Training.BatchSize), routes*(n+(n+4)/5)),
		Dir:       r.Dir.Path(), Last: r.Dir.Last(), Best: r.Dir.Best(), Resumed: r.Resume, EpochsDone: r.at.Epoch, StepsDone: r.at.Step}
}
