package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"haul/internal/config"
	"haul/internal/env/darkroom"
	"haul/internal/kernel"
	"haul/internal/model"
)

// Where the learning histories live while an agent is trained.
const (
	DataAuto   = "auto"   // on the device if they fit there
	DataDevice = "device" // the step draws its own rows: nothing is copied
	DataHost   = "host"   // the loader makes rows ahead of the step
)

// ADOptions say what to train, from which histories, where, and who listens.
type ADOptions struct {
	Config     *config.AD // nil with Resume: the checkpoint's own
	Device     kernel.Device
	Dir        *Dir
	History    *darkroom.History
	Data       string // one of the Data constants; "" is DataAuto
	Iterations int    // in place of train_timesteps; 0 keeps it
	Resume     bool   // continue from Dir.Last
	Workers    int    // in place of num_workers; 0 keeps it
	Listener   ADListener
}

// RunAD trains an in-context agent until its iterations are over. Its errors are one line each; *Interrupted and *NonFinite are told
// apart by errors.As.
func RunAD(ctx context.Context, o ADOptions) (err error) {
	if o.Listener == nil {
		o.Listener = silentAD{}
	}
	r := &adRun{ADOptions: o}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.prepare(); err != nil {
		return err
	}
	o.Listener.Start(r.info())
	if err := r.loop(ctx); err != nil {
		return err
	}
	sum, err := r.summary(ctx)
	if err != nil {
		return r.interrupted(err)
	}
	o.Listener.Done(sum)
	return nil
}

// adRun is an agent's training in progress. One goroutine owns it.
type adRun struct {
	ADOptions
	cfg      *config.AD
	lessons  *lessons
	model    *model.AD
	store    kernel.Store
	program  *adProgram
	step     kernel.Runner
	feed     *feed // nil with the histories on the device
	test     kernel.Runner
	eval     *adEvaluator
	at       adProgress
	lastTest *ADTest         // of the present weights
	lastEval *ADEvaluation   // likewise
	asked    kernel.Counters // of the device, in this process's iterations since the last report
	perRow   int64           // operations of a row
}

// prepare loads or makes the state, compiles the programs and puts a first checkpoint on disk.
func (r *adRun) prepare() error {
	ck, err := r.start()
	if err != nil {
		return err
	}
	if r.lessons, err = newLessons(r.History, r.cfg); err != nil {
		return err
	}
	if ck != nil {
		if err := r.sameHistories(&ck.Progress); err != nil {
			return err
		}
	}
	if r.model, err = newAgentModel(r.cfg, r.lessons.room.Size); err != nil {
		return err
	}
	if err := r.compile(); err != nil {
		return err
	}
	if ck == nil {
		l := r.model.Layout()
		ck = &adCheckpoint{Weights: model.Initial(l, r.cfg.Seed), M: make([]float32, l.Len), V: make([]float32, l.Len),
			Progress: adProgress{Room: r.lessons.room, Histories: r.lessons.checksum}}
	}
	r.at = ck.Progress
	r.at.Learned = r.lessons.learned
	if err := r.restore(ck); err != nil {
		return err
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
func (r *adRun) start() (*adCheckpoint, error) {
	var ck *adCheckpoint
	cfg := r.Config
	if r.Resume {
		if _, err := os.Stat(r.Dir.Last()); errors.Is(err, fs.ErrNotExist) {
			return nil, nothingToResume(r.Dir)
		}
		var err error
		if ck, _, err = loadADCheckpoint(r.Dir.Last(), cfg); err != nil {
			return nil, err
		}
		if cfg == nil {
			cfg = ck.Config
		} else if err := sameAgentRun(ck.Config, cfg); err != nil {
			return nil, fmt.Errorf("resume %s: %w", r.Dir.Path(), err)
		}
		if kindOf(r.Device.Name()) != kindOf(ck.Device) {
			r.Listener.Note(otherDevice(ck.Device))
		}
	}
	own := *cfg
	if ck != nil {
		own.Name = ck.Config.Name
	}
	if r.Iterations > 0 {
		own.TrainTimesteps = r.Iterations
	}
	if ck != nil && own.TrainTimesteps < ck.Progress.Iteration {
		return nil, fmt.Errorf("resume %s: it has done %d iterations, more than the %d asked for", r.Dir.Path(), ck.Progress.Iteration, own.TrainTimesteps)
	}
	r.cfg = &own
	return ck, nil
}

// sameHistories refuses to go on with other data.
func (r *adRun) sameHistories(p *adProgress) error {
	if err := r.History.Matches(p.Room.Size, p.Room.Horizon); err != nil {
		return fmt.Errorf("resume %s: the run was started in another room: %w", r.Dir.Path(), err)
	}
	if r.lessons.checksum != p.Histories {
		return fmt.Errorf("resume %s: the run was started with other learning histories (checksum %s, these have %s): give it its own", r.Dir.Path(), p.Histories, r.lessons.checksum)
	}
	return nil
}

// keyADBatch is the key that the agent's training step grows with.
const keyADBatch = "train_batch_size"

// compile allocates weights and programs, after asking whether there is room.
func (r *adRun) compile() error {
	l := r.model.Layout()
	if err := fits(r.Device, "the model", 0, 4*4*int64(l.Len)); err != nil { // weights, gradient, two moments
		return err
	}
	var err error
	if r.store, err = r.Device.NewStore(l, true); err != nil {
		return err
	}
	if r.program, r.step, err = compileAD(r.Device, r.model, r.cfg, r.lessons, r.store, r.Data); err != nil {
		return err
	}
	r.perRow = adFLOPs(r.model, r.lessons.trainSpec.Tokens, 1)
	test := recordADTest(r.Device, r.model, r.cfg, r.lessons.testSpec.Tokens)
	if r.test, err = compileFor("test_batch_size", test.plan, r.Device, r.store); err != nil {
		return err
	}
	rows := r.lessons.testRows(r.cfg.TestBatchSize)
	for i, t := range test.fed() {
		if err := r.test.WriteBatch(t, rows.Ints[i]); err != nil {
			return err
		}
	}
	if r.eval, err = newADEvaluator(r.Device, r.cfg, r.model, r.store, r.lessons.room, r.lessons.learned, ADEvalOptions{History: r.History}); err != nil {
		return err
	}
	return fitsCompiled(keyADBatch, r.Device, "the run", r.cfg.TrainBatchSize, r.memory())
}

// compileAD compiles the training step with its histories where they are asked for, and writes them there.
func compileAD(dev kernel.Device, m *model.AD, c *config.AD, l *lessons, store kernel.Store, data string) (*adProgram, kernel.Runner, error) {
	p := recordAD(dev, m, c, l, data != DataHost)
	switch data {
	case DataDevice, DataHost:
	case DataAuto, "":
		if fits(dev, "", 0, leastMemory(p.plan.Program())) != nil {
			p = recordAD(dev, m, c, l, false)
		}
	default:
		return nil, nil, fmt.Errorf("unknown place for the histories %q: use %s, %s or %s", data, DataDevice, DataHost, DataAuto)
	}
	r, err := compileFor(keyADBatch, p.plan, dev, store)
	if err != nil {
		return nil, nil, err
	}
	if p.history != nil {
		if err := r.WriteBatch(p.history, l.train); err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
	}
	return p, r, nil
}

func (r *adRun) memory() int64 { return r.step.Memory() + r.test.Memory() + r.eval.net.runner.Memory() }

func (r *adRun) close() error {
	var errs []error
	if r.feed != nil {
		errs = append(errs, r.feed.source.Close())
	}
	if r.step != nil {
		errs = append(errs, r.step.Close())
	}
	if r.test != nil {
		errs = append(errs, r.test.Close())
	}
	if r.eval != nil {
		errs = append(errs, r.eval.close())
	}
	return errors.Join(errs...)
}

// restore puts a checkpoint onto the device, and the loader at its first row.
func (r *adRun) restore(ck *adCheckpoint) error {
	if err := firstError(r.store.WriteWeights(ck.Weights), r.store.WriteMoments(ck.M, ck.V), r.step.SetState(ck.Progress.Device),
		r.step.SetControl(adControl(r.cfg))); err != nil {
		return err
	}
	if r.program.history != nil {
		return nil
	}
	var err error
	r.feed, err = newFeed(r.step, r.program, r.lessons, ck.Progress.Device.Instances, r.workers(), r.cfg.Prefetch)
	return err
}

// workers is how many goroutines make rows.
func (r *adRun) workers() int {
	if r.Workers > 0 {
		return r.Workers
	}
	return r.cfg.NumWorkers
}

// save writes where the run stands to a file.
func (r *adRun) save(path string) error {
	n := r.model.Layout().Len
	ck := &adCheckpoint{Config: r.cfg, Device: r.Device.Name(), Weights: make([]float32, n), M: make([]float32, n), V: make([]float32, n)}
	var err error
	if r.at.Device, err = r.step.State(); err != nil {
		return err
	}
	ck.Progress = r.at
	if err := firstError(r.store.ReadWeights(ck.Weights), r.store.ReadMoments(ck.M, ck.V)); err != nil {
		return err
	}
	return ck.save(path, r.model.Layout())
}

// interrupted turns the end of the context, at a moment when all is saved, into the error that says how to go on.
func (r *adRun) interrupted(err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Interrupted{Dir: r.Dir.Path(), Step: r.at.Iteration, Steps: r.cfg.TrainTimesteps, Cause: err}
}

func (r *adRun) info() ADInfo {
	c, l := r.cfg, r.lessons
	in := ADInfo{Name: c.Name, Model: ADName, Parameters: r.model.Layout().Count(), Device: r.Device.Name(), Precision: Precision(r.Device), Memory: r.memory(),
		Data: DataDevice, DataBytes: 4 * int64(len(l.train)), Room: l.room, Goals: len(l.learned), Streams: l.trainSpec.Streams, Tokens: l.trainSpec.Tokens,
		Batch: c.TrainBatchSize, Parts: c.GradientAccumulationSteps, Shard: r.program.plan.B(), Iterations: c.TrainTimesteps,
		FLOPs: r.perRow * int64(c.TrainBatchSize*c.GradientAccumulationSteps), Dir: r.Dir.Path(), Last: r.Dir.Last(), Best: r.Dir.Best(), Resumed: r.Resume, Done: r.at.Iteration}
	if t, ok := r.step.(kernel.Teller); ok {
		in.Paths = t.Paths()
	}
	if r.feed != nil {
		in.Data, in.Workers = DataHost, r.workers()
	}
	return in
}

// summary is how the run ended; what was not judged in this process is judged again.
func (r *adRun) summary(ctx context.Context) (ADSummary, error) {
	sum := ADSummary{Iterations: r.at.Iteration, Sequences: uint64(r.at.Iteration) * uint64(r.cfg.TrainBatchSize*r.cfg.GradientAccumulationSteps), Seconds: r.at.Elapsed,
		BestIteration: r.at.BestIteration, Dir: r.Dir.Path(), Last: r.Dir.Last(), Best: r.Dir.Best()}
	if r.at.Best != nil {
		sum.BestLoss = *r.at.Best
	}
	var err error
	if r.lastTest == nil {
		if r.lastTest, err = r.judge(); err != nil {
			return sum, err
		}
	}
	if r.lastEval == nil {
		if r.lastEval, err = r.evaluate(ctx); err != nil {
			return sum, err
		}
	}
	sum.Test, sum.Evaluation = *r.lastTest, r.lastEval
	return sum, nil
}
