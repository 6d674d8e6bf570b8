package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/safetensors"
	"haul/internal/world"
	"haul/internal/world/history"
)

// keyBatch is the setting that the memory of the training step grows with.
const keyBatch = "train_batch_size"

// state is the recipe's own part of a checkpoint's state.
type state struct {
	Room json.RawMessage `json:"room"` // the world
	// absolute path of the learning histories; the default of a resumed run and of an evaluation
	Path      string `json:"history_path"`
	Histories string `json:"histories"` // checksum of the words that are learned from
	// Learned are the goals that are learned from. They never count as held out, even if another
	// file holds them out.
	Learned []json.RawMessage `json:"learned"`
}

// newState returns the state at the start of a run.
func newState(d *dataset, path string) (at state, err error) {
	at = state{Path: path, Histories: d.checksum}
	for _, t := range d.learned {
		at.Learned = append(at.Learned, json.RawMessage(nameOf(t)))
	}
	at.Room, err = json.Marshal(d.world)
	return at, err
}

// world returns the world that a checkpoint's agent was trained in.
func (at *state) world() (world.World, error) { return history.ParseWorld(at.Room) }

// names returns the names of the tasks that are learned from.
func (at *state) names() (out []string) {
	for _, t := range at.Learned {
		out = append(out, string(t))
	}
	return out
}

// trainer trains AD. An update is one iteration: as many steps as its gradient has parts.
type trainer struct {
	*run.Setup
	*Task
	cfg       *config.AD
	dataset   *dataset
	model     *model.AD
	store     kernel.Store
	mean      *run.Average // only with average_decay
	program   *program
	step      kernel.Runner
	feed      *feed // nil if the histories are on the device
	test      kernel.Runner
	testWorld *comm.World // ranks that divide the test's rows; nil: each rank has all rows
	eval      *evaluator  // nil if the world cannot be played
	at        state
	view      *view
	perRow    int64 // floating-point operations per row

	progress func(done, of int) // of the current evaluation

	// Results for the current weights.
	lastTest *Test
	lastEval *Evaluation
}

func newTrainer(s *run.Setup, task *Task) (*trainer, error) {
	t := &trainer{Setup: s, Task: task, cfg: s.Settings.(*config.AD)}
	err := t.compile()
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// compile allocates weights and programs. It returns an error if they do not fit into memory.
func (t *trainer) compile() error {
	var err error
	if t.dataset, err = newDataset(t.History, t.cfg); err != nil {
		return err
	}
	if t.at, err = newState(t.dataset, t.Path); err != nil {
		return err
	}
	if t.model, err = newModel(t.cfg, t.dataset.space); err != nil {
		return err
	}
	if t.store, err = run.NewStore(t.Device, t.model.Layout(), true); err != nil {
		return err
	}
	judged := t.store
	if d := t.cfg.AverageDecay; d > 0 {
		if t.mean, err = run.NewAverage(t.Device, t.model.Layout(), d); err != nil {
			return err
		}
		judged = t.mean.Store
	}
	if t.program, t.step, err = compileStep(t.Device, t.model, t.cfg, t.dataset, t.store, t.Data, t.World.Peer()); err != nil {
		return err
	}
	t.TellParts("gradient_parts", t.cfg.GradientParts, t.program.plan.Program())
	t.perRow = stepFLOPs(t.model, t.dataset.trainSpec.Tokens, 1)
	test, shared := recordTest(t.Device, t.model, t.cfg, t.dataset.testSpec.Tokens, t.World)
	if shared {
		t.testWorld = t.World
	}
	if t.test, err = run.Compile("test_batch_size", test.plan, t.Device, judged); err != nil {
		return err
	}
	rows := t.dataset.testRows(t.cfg.TestBatchSize)
	prog := test.plan.Program()
	for i, tensor := range test.fed() {
		words := len(rows.Ints[i]) / t.cfg.TestBatchSize
		if err := t.test.WriteBatch(tensor, rows.Ints[i][prog.First()*words:][:prog.Batch*words]); err != nil {
			return err
		}
	}
	var where []int // nil: the held-out goals
	if t.cfg.ValidationGoals > 0 {
		_, where, _ = goals(t.History, t.cfg)
	}
	if game, ok := t.dataset.world.(world.Game); ok {
		o := EvalOptions{History: t.History, Goals: where, World: t.World, Progress: func(done, of int) { t.progress(done, of) }}
		if t.eval, err = newEvaluator(t.Device, t.cfg, t.model, judged, game, t.at.names(), o); err != nil {
			return err
		}
	}
	return run.FitsCompiled(keyBatch, t.Device, "the run", t.cfg.TrainBatchSize, t.Memory())
}

// compileStep compiles the training step and, if the histories go onto the device, writes them
// there.
func compileStep(dev kernel.Device, m *model.AD, c *config.AD, d *dataset, store kernel.Store, data string, peer kernel.Peer) (*program, kernel.Runner, error) {
	if d.indexed && data == DataDevice {
		return nil, nil, errors.New("imported histories are read from their file: leave them on the host with --data host")
	}
	if d.onHost() && data == DataDevice {
		return nil, nil, errors.New("labels seek and other names are made as rows are: on the host (--data host)")
	}
	if d.indexed || d.onHost() || data != DataDevice && d.trainSpec.Stride() > kernel.DrawnWords {
		data = DataHost
	}
	p, err := recordStep(dev, m, c, d, data != DataHost, peer)
	if err != nil {
		return nil, nil, err
	}
	if data != DataDevice && data != DataHost && run.Fits(keyBatch, dev, "", 0, run.LeastMemory(dev, p.plan.Program())) != nil {
		if p, err = recordStep(dev, m, c, d, false, peer); err != nil {
			return nil, nil, err
		}
	}
	r, err := run.Compile(keyBatch, p.plan, dev, store)
	if missing := cpuAlone(err); missing != nil {
		return nil, nil, missing
	}
	if err != nil && p.history != nil && fitsWithout(dev, m, c, d, peer) {
		return nil, nil, fmt.Errorf("the histories take %s of it: leave them on the host with --data host (%w)", report.Bytes(run.Product(4, int64(len(d.train)))), err)
	}
	if err != nil {
		return nil, nil, err
	}
	if p.history != nil {
		if err := r.WriteBatch(p.history, d.train); err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
	}
	return p, r, nil
}

// fitsWithout reports whether the step would fit with its histories on the host.
func fitsWithout(dev kernel.Device, m *model.AD, c *config.AD, d *dataset, peer kernel.Peer) bool {
	p, err := recordStep(dev, m, c, d, false, peer)
	return err == nil && run.Fits(keyBatch, dev, "", 0, run.LeastMemory(dev, p.plan.Program())) == nil
}

func (t *trainer) Layout() *kernel.Layout      { return t.model.Layout() }
func (t *trainer) Runner() kernel.Runner       { return t.step }
func (t *trainer) State() any                  { return &t.at }
func (t *trainer) Extra() []safetensors.Tensor { return nil }
func (t *trainer) RateKey() string             { return "lr" }
func (t *trainer) Initial() []float32          { return model.Initial(t.model.Layout(), t.cfg.Seed) }

func (t *trainer) Sets() []run.Set {
	sets := []run.Set{{Store: t.store, Trained: true}}
	if t.mean != nil {
		sets = append(sets, run.Set{Prefix: run.PrefixAverage, Store: t.mean.Store})
	}
	return sets
}

// Shipped returns the averaged weights that are evaluated and saved, or nil without an average.
func (t *trainer) Shipped() kernel.Store {
	if t.mean == nil {
		return nil
	}
	return t.mean.Store
}

// Restore refuses to continue with other data, and starts the loader at the first row that
// the run has not used.
func (t *trainer) Restore(_ context.Context, ck *run.Checkpoint, _ bool) error {
	if ck != nil {
		was, err := t.at.world()
		if err == nil {
			err = history.Matches(t.History, was)
		}
		if err != nil {
			return fmt.Errorf("resume %s: %w", t.Dir.Path(), err)
		}
		if t.at.Histories != t.dataset.checksum {
			return fmt.Errorf("resume %s: the run was started with other learning histories (checksum %s, these have %s): give it its own with --history", t.Dir.Path(), t.at.Histories, t.dataset.checksum)
		}
		t.at.Path = t.Path // their path in this run
	}
	if err := t.step.SetControl(control(t.cfg)); err != nil || t.program.history != nil {
		return err
	}
	var err error
	t.feed, err = newFeed(t.step, t.program, t.dataset, t.Progress.Device.Instances, t.workers(), t.cfg.Prefetch)
	return err
}

// workers returns the number of goroutines that make rows.
func (t *trainer) workers() int {
	if t.Workers > 0 {
		return t.Workers
	}
	return t.cfg.NumWorkers
}

// Prepare does nothing.
func (t *trainer) Prepare(context.Context) error { return nil }

func (t *trainer) Total() int { return t.cfg.TrainTimesteps }

// Next returns the first iteration after `done` that a test, evaluation or report follows.
func (t *trainer) Next(done int) int {
	c, next := t.cfg, t.cfg.TrainTimesteps
	for _, every := range [...]int{c.SummaryInterval, c.EvalInterval, c.GenInterval, c.CkptInterval} {
		next = min(next, (done/every+1)*every)
	}
	if t.mean != nil {
		next = min(next, (done/c.AverageInterval+1)*c.AverageInterval)
	}
	return next
}

func (t *trainer) Place(updates int) string {
	return fmt.Sprintf("after iteration %d of %d", updates, t.cfg.TrainTimesteps)
}

// Begin drops the results of the old weights.
func (t *trainer) Begin() error {
	t.lastTest, t.lastEval = nil, nil
	return nil
}

// Update makes one update: as many steps as it has parts.
func (t *trainer) Update(ctx context.Context) error {
	ended := ctx.Err
	for range t.cfg.GradientAccumulationSteps {
		var err error
		if t.feed == nil {
			err = t.step.Run()
		} else {
			err = t.feed.run(ctx)
		}
		if errors.Is(err, kernel.ErrStopped) {
			return ended()
		}
		if err != nil {
			return err
		}
		// a started update is finished, or aborted with all its parts
		ctx = context.Background()
	}
	return nil
}

// Abandon aborts the current update.
func (t *trainer) Abandon() { run.Stop(t.step) }

// Waited returns the time in seconds that this process has waited for rows.
func (t *trainer) Waited() float64 {
	if t.feed == nil {
		return 0
	}
	return t.feed.source.Waited().Seconds()
}

func (t *trainer) Memory() int64 {
	n := t.step.Memory() + t.test.Memory()
	if t.eval != nil {
		n += t.eval.net.runner.Memory()
	}
	return n
}

// chooses reports whether the checkpoint with the highest return on the validation goals counts as
// the best. Otherwise the lowest loss decides.
func (t *trainer) chooses() bool { return t.cfg.ValidationGoals > 0 && t.eval != nil }

func (t *trainer) Close() error {
	var errs []error
	if t.feed != nil {
		errs = append(errs, t.feed.source.Close())
	}
	if t.step != nil {
		errs = append(errs, t.step.Close())
	}
	if t.test != nil {
		errs = append(errs, t.test.Close())
	}
	if t.eval != nil {
		errs = append(errs, t.eval.close())
	}
	if t.mean != nil {
		errs = append(errs, run.CloseStores(t.mean.Store))
	}
	return errors.Join(append(errs, run.CloseStores(t.store))...)
}

// Describe fills in the recipe's part of the run's description.
func (t *trainer) Describe(i *report.Info) {
	t.view = &view{info: i, cfg: t.cfg, dataset: t.dataset, flops: t.perRow * int64(t.cfg.TrainBatchSize*t.cfg.GradientAccumulationSteps)}
	if t.feed != nil {
		t.view.host, t.view.workers = true, t.workers()
	}
	i.View, i.Tables, i.At = t.view, tables(), t.Progress.Updates
	i.Done = report.Plural(int64(t.Progress.Updates), "iteration")
}
