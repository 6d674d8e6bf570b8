package run_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/safetensors"
)

// A minimal recipe: a small network that learns four values. It tests what package run guarantees
// for every recipe.

// toy is the recipe. It reads sizes and the seed from the settings of a routing run.
type toy struct{}

var toyAbout = run.About{Name: config.RecipeGT, Unit: "epoch", Use: run.LastName}

func (toy) About() *run.About                                                  { return &toyAbout }
func (toy) Length(s config.Settings) int                                       { return s.(*config.Config).Training.NumEpochs }
func (toy) Precision(config.Settings) string                                   { return "" }
func (toy) Step(kernel.Device, config.Settings) (*run.Step, error)             { return nil, errors.ErrUnsupported }
func (toy) Open(config.Settings, run.Flags, *run.Checkpoint) (run.Task, error) { return toyTask{}, nil }
func (toy) Evaluate(context.Context, *run.Evaluation) (run.Result, error) {
	return nil, errors.ErrUnsupported
}
func (toy) Lengthen(s config.Settings, n int) config.Settings {
	own := *s.(*config.Config)
	own.Training.NumEpochs = n
	return &own
}
func (r toy) Merge(file, now config.Settings) config.Settings {
	return r.Lengthen(file, r.Length(now))
}

type toyTask struct{}

func (toyTask) Close() error { return nil }
func (toyTask) Trainer(s *run.Setup) (run.Trainer, error) {
	t := &toyTrainer{Setup: s, cfg: s.Settings.(*config.Config), net: model.NewMLP(2, 4, 3)}
	var err error
	if t.store, err = s.Device.NewStore(t.net.Layout(), true); err != nil {
		return nil, err
	}
	p := plan.New("toy", s.Device, 4, 1, t.net.Layout())
	x, sample := p.Rows("x", p.B(), 2), p.Rows("sample", p.B(), 4)
	sums := p.PPO(t.net.Record(p, x), sample, kernel.PPO{Clip: 0.2, ValueCoef: 0.5})
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, 1)
	p.Once(&kernel.Tally{Sums: []kernel.Sum{kernel.NewSum("miss", p.Columns(sums, 1, 2), nil)}})
	if t.step, err = run.Compile("training.batch_size", p, s.Device, t.store); err != nil {
		return nil, err
	}
	return t, errors.Join(t.step.WriteBatch(x, []float32{0, 0, 0, 1, 1, 0, 1, 1}), t.step.WriteBatch(sample, []float32{0, -1, 0, 0.5, 1, -1, 0, -0.5, 2, -1, 0, 1, 0, -1, 0, 0.25}),
		t.step.SetControl(kernel.Control{LearningRate: float32(t.cfg.Training.LearningRate)}))
}

// toyState is the recipe's state in a checkpoint.
type toyState struct {
	Epochs int     `json:"epochs"`
	Last   float64 `json:"last"`
}

type toyTrainer struct {
	*run.Setup
	cfg   *config.Config
	net   *model.MLP
	store kernel.Store
	step  kernel.Runner
	at    toyState
}

// toyRow is the record of an epoch.
type toyRow struct {
	Epoch int     `json:"epoch" csv:"epoch"`
	Miss  float64 `json:"miss" csv:"miss"`
	Was   float64 `json:"was" csv:"was"`
	Best  bool    `json:"best" csv:"best"`
}

func (t *toyTrainer) Layout() *kernel.Layout { return t.net.Layout() }
func (t *toyTrainer) Initial() []float32 {
	return model.Initial(t.net.Layout(), t.cfg.Experiment.RandomSeed)
}
func (t *toyTrainer) Sets() []run.Set               { return []run.Set{{Store: t.store, Trained: true}} }
func (t *toyTrainer) Runner() kernel.Runner         { return t.step }
func (t *toyTrainer) State() any                    { return &t.at }
func (t *toyTrainer) Extra() []safetensors.Tensor   { return nil }
func (t *toyTrainer) Prepare(context.Context) error { return nil }
func (t *toyTrainer) Begin() error                  { return nil }
func (t *toyTrainer) Waited() float64               { return 0 }
func (t *toyTrainer) RateKey() string               { return "training.learning_rate" }
func (t *toyTrainer) Memory() int64                 { return t.step.Memory() }
func (t *toyTrainer) Close() error                  { return t.step.Close() }
func (t *toyTrainer) Place(updates int) string      { return fmt.Sprintf("after update %d", updates) }
func (t *toyTrainer) Update(context.Context) error  { return t.step.Run() }
func (t *toyTrainer) Total() int                    { return t.cfg.Training.NumEpochs * t.cfg.Training.NumBatchesPerEpoch }
func (t *toyTrainer) Next(done int) int {
	each := t.cfg.Training.NumBatchesPerEpoch
	return min(t.Total(), (done/each+1)*each)
}
func (t *toyTrainer) Restore(context.Context, *run.Checkpoint, bool) error { return nil }

func (t *toyTrainer) EndInterval(ctx context.Context, s *run.Interval) (*run.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	row := &toyRow{Epoch: t.at.Epochs + 1, Miss: s.Sums.Sums.Of("miss") / float64(s.Updates), Was: t.at.Last}
	row.Best = t.Progress.Better(row.Miss)
	t.at = toyState{row.Epoch, row.Miss}
	return &run.Outcome{Records: []report.Record{{Kind: "epoch", At: row.Epoch, Row: row}}, Taken: true, Save: true}, nil
}

func (t *toyTrainer) Finish(context.Context) (*report.Ending, error) {
	return &report.Ending{Title: "done", Row: &toyRow{Epoch: t.at.Epochs, Miss: *t.Progress.Best}}, nil
}

func (t *toyTrainer) Describe(i *report.Info) { i.View, i.At = toyView{}, t.at.Epochs }

type toyView struct{ report.View }

func (toyView) Add(*report.Record, bool) {}

func toySettings(t testing.TB, sets ...string) *config.Config {
	t.Helper()
	c, err := config.Load("tiny_1", append([]string{"training.num_epochs=4", "training.num_batches_per_epoch=5", "training.learning_rate=0.01"}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func toyDevice(testing.TB, int) kernel.Device { return reference.New[float32](2) }

func toyOptions(c *config.Config) run.Options {
	return run.Options{Recipe: toy{}, Task: toyTask{}, Settings: c, Device: toyDevice(nil, 1)}
}

// TestSuite runs the suite of all recipes on the toy.
func TestSuite(t *testing.T) {
	runtest.Suite(t, runtest.Case{Recipe: toy{}, Settings: toySettings(t), Device: toyDevice, Open: func(testing.TB, config.Settings) run.Task { return toyTask{} },
		Other: toySettings(t, "training.learning_rate=0.5"), Differs: "learning_rate: 0.01", State: &toyState{Epochs: 2, Last: 0.75}})
}

// TestARunByHand: records, checkpoints and the final state equal the results of the same
// updates without the loop.
func TestARunByHand(t *testing.T) {
	c := toySettings(t)
	h, ck := runtest.Whole(t, toyOptions(c))
	s := &run.Setup{Settings: c, Device: toyDevice(t, 1), Progress: &run.Progress{}}
	trainer, err := toyTask{}.Trainer(s)
	if err != nil {
		t.Fatal(err)
	}
	tr := trainer.(*toyTrainer)
	if err := errors.Join(tr.store.WriteWeights(tr.Initial()), tr.step.SetState(kernel.State{})); err != nil {
		t.Fatal(err)
	}
	best, bestAt := 0.0, 0
	rows := runtest.Rows[toyRow](h)
	for epoch := range 4 {
		for range 5 {
			if err := tr.step.Run(); err != nil {
				t.Fatal(err)
			}
		}
		m, err := tr.step.TakeMetrics()
		if err != nil {
			t.Fatal(err)
		}
		miss := m.Sum("miss") / 5
		if epoch == 0 || miss < best {
			best, bestAt = miss, 5*(epoch+1)
		}
		if rows[epoch].Miss != miss || h.Records[epoch].At != epoch+1 {
			t.Errorf("epoch %d is told as %+v, want a miss of %v", epoch+1, rows[epoch], miss)
		}
	}
	want := make([]float32, tr.Layout().Len)
	if err := tr.store.ReadWeights(want); err != nil {
		t.Fatal(err)
	}
	file, err := run.Load(h.Info.Last, config.RecipeGT)
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.Weights(tr.Layout(), "")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the weights differ, %v", err)
	}
	p := ck.Progress
	if p.Updates != 20 || p.Concluded != 20 || p.Since != 0 || *p.Best != best || p.BestAt != bestAt || p.Device.Step != 20 || p.Device.Instances != 80 {
		t.Errorf("the run stands at %+v, want 20 updates and the best, %v, at %d", p, best, bestAt)
	}
	if kept := runtest.Load(t, h.Info.Best); kept.Progress.Updates != bestAt {
		t.Errorf("the best checkpoint is of update %d, want %d", kept.Progress.Updates, bestAt)
	}
	if end := h.Ending.Row.(*toyRow); end.Miss != best || end.Epoch != 4 {
		t.Errorf("the end is told as %+v", end)
	}
}

// shipping is a toy trainer whose validated weights are not the trained ones.
type shipping struct {
	*toyTrainer
	other kernel.Store
}

func (s shipping) Shipped() kernel.Store { return s.other }

type shippingTask struct{ toyTask }

func (shippingTask) Trainer(s *run.Setup) (run.Trainer, error) {
	t, err := toyTask{}.Trainer(s)
	if err != nil {
		return nil, err
	}
	own := t.(*toyTrainer)
	other, err := s.Device.NewStore(own.Layout(), false)
	if err == nil {
		w := make([]float32, own.Layout().Len)
		for i := range w {
			w[i] = float32(i)
		}
		err = other.WriteWeights(w)
	}
	return shipping{own, other}, err
}

// TestTheBestHoldsWhatIsShipped: the best checkpoint holds only the weights of Shipped, the last
// one the trained weights.
func TestTheBestHoldsWhatIsShipped(t *testing.T) {
	o := toyOptions(toySettings(t))
	o.Task = shippingTask{}
	h, _ := runtest.Whole(t, o)
	l := model.NewMLP(2, 4, 3).Layout()
	for path, whole := range map[string]bool{h.Info.Best: false, h.Info.Last: true} {
		ck, err := run.Load(path, config.RecipeGT)
		if err != nil {
			t.Fatal(err)
		}
		w, err := ck.Weights(l, "")
		if err != nil {
			t.Fatal(err)
		}
		last := l.Params[len(l.Params)-1]
		at := last.Offset + last.Len() - 1
		if (w[at] == float32(at)) == whole {
			t.Errorf("%s holds %v at %d", path, w[at], at)
		}
		if _, err := ck.Weights(l, "adam_m."); (err == nil) != whole {
			t.Errorf("%s: moments: %v", path, err)
		}
	}
}
