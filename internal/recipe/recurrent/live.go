package recurrent

import (
	"context"
	"errors"
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/run"
	"haul/internal/world"
)

// CheckStep checks a step before anything changes, so that a program that has sent an invalid step
// can send a corrected one.

// Shown describes the observations and actions of external environments. An observation consists of
// len(Sizes) whole numbers, each from 0 to its size minus 1, or, if Sizes is nil, of Measured real
// numbers.
type Shown struct {
	Sizes    []int
	Measured int
	Actions  int
}

// width returns the number of fields of an observation.
func (s *Shown) width() int {
	if s.Sizes != nil {
		return len(s.Sizes)
	}
	return s.Measured
}

// check returns an error if histories cannot store such observations or actions.
func (s *Shown) check() error {
	switch {
	case (s.Sizes == nil) == (s.Measured == 0):
		return errors.New("an observation has whole numbers or measured ones: want either")
	case s.width() < 1 || s.width() > world.MaxFields:
		return fmt.Errorf("an observation of %d numbers: want 1 to %d", s.width(), world.MaxFields)
	case s.Actions < 2 || s.Actions > world.MaxActions:
		return fmt.Errorf("%d actions: want 2 to %d", s.Actions, world.MaxActions)
	}
	for i, n := range s.Sizes {
		if n < 1 || n > world.MaxSize {
			return fmt.Errorf("field %d takes %d values: want 1 to %d", i, n, world.MaxSize)
		}
	}
	return nil
}

// StepResult is the result of one step of every environment. Observed holds the observations for
// the next action: after the end of an episode, the first observation of the next episode.
type StepResult struct {
	Observed   [][]float64
	Rewards    []float64
	Terminated []bool // the episode has terminated; nil: in no environment
	Truncated  []bool // a time limit truncated the episode; nil: in no environment
	// FinalObs holds the last observation of each truncated episode. If it is nil, or nil for an
	// environment, the critic takes the value of the observation before the last action instead.
	FinalObs [][]float64
	// Idle marks environments that ignored the action, because the step began an episode. Nil: none
	// did.
	Idle []bool
}

// LiveDefault returns settings that learn tasks of many kinds of environments in a minute on one
// core.
func LiveDefault() Settings {
	s := Default()
	s.Envs, s.Rate, s.Parts = 8, 1e-3, 2
	return s
}

// CheckLive returns an error if no learner can run with these settings and spaces.
func CheckLive(s *Settings, shown *Shown) error {
	if err := s.check(); err != nil {
		return err
	}
	return shown.check()
}

// Live is a learner in external environments, which another program runs. Only one goroutine may
// use it.
type Live struct {
	learner *learner
	there   *elsewhere
	seed    uint64
}

// NewLive compiles a learner. act applies the actions to the environments and returns the result of
// the step, which must have passed CheckStep.
func NewLive(dev kernel.Device, s Settings, shown Shown, seed uint64, act func(ctx context.Context, actions []uint8) (*StepResult, error)) (*Live, error) {
	if err := CheckLive(&s, &shown); err != nil {
		return nil, err
	}
	if err := run.FitsHost("--steps", "the host", "keeping histories until they are labelled", s.Steps, keptBytes(&s, &shown)); err != nil {
		return nil, err
	}
	there := newElsewhere(&s, shown, act)
	l, err := newLearner(dev, &s, there.senses(), there)
	if err != nil {
		return nil, err
	}
	return &Live{learner: l, there: there, seed: seed}, nil
}

// Close frees the learner.
func (l *Live) Close() error { return l.learner.close() }

// Check checks the first observations of a task, one row per environment.
func (l *Live) Check(observed [][]float64) error { return l.there.rows("obs", observed, false) }

// CheckStep returns an error if the result of a step is invalid.
func (l *Live) CheckStep(t *StepResult) error {
	w := l.there
	if err := w.rows("obs", t.Observed, false); err != nil {
		return err
	}
	if len(t.Rewards) != w.envs {
		return fmt.Errorf("reward: want a list of %d numbers", w.envs)
	}
	for e, v := range t.Rewards {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("reward: that of environment %d is %v", e, v)
		}
	}
	for i, marks := range [][]bool{t.Terminated, t.Truncated, t.Idle} {
		if marks != nil && len(marks) != w.envs {
			return fmt.Errorf("%s: want a list of %d truth values", []string{"end", "cut", "idle"}[i], w.envs)
		}
	}
	for e := range w.envs {
		switch over := marked(t.Terminated, e) || marked(t.Truncated, e); {
		case over && marked(t.Idle, e):
			return fmt.Errorf("idle: environment %d only began an episode, and its episode is over", e)
		case !over && len(t.FinalObs) == w.envs && t.FinalObs[e] != nil:
			return fmt.Errorf("last: the episode of environment %d goes on: want null", e)
		}
	}
	if t.FinalObs != nil {
		return w.rows("last", t.FinalObs, true)
	}
	return nil
}

// marked reports whether environment e is marked. Nil marks none.
func marked(marks []bool, e int) bool { return marks != nil && marks[e] }

// Learn trains on a task that begins with the given observations. It returns the most likely
// actions of the final policy, by environment and step.
func (l *Live) Learn(ctx context.Context, task int64, observed [][]float64) ([][]uint8, error) {
	l.there.first = observed
	if err := l.learner.learn(ctx, task, l.seed); err != nil {
		return nil, err
	}
	best := make([][]uint8, l.there.envs)
	for e := range best {
		best[e] = l.there.best[e*l.there.steps:][:l.there.steps]
	}
	return best, nil
}

// The last rows of the table follow the rows of all field values, then of all actions and of no
// action. They mark whether the episode is over.
const (
	notOver = 0
	isOver  = 1
)

// elsewhere is the set of external environments of a learner. It stores all observations of a task
// until the learner has labelled them.
type elsewhere struct {
	shown       Shown
	envs, steps int
	act         func(ctx context.Context, actions []uint8) (*StepResult, error)
	discount    float64
	base        []int32 // first row of each field
	actionRow   int32
	endRow      int32

	first [][]float64 // the first observations of the task
	now   []float64   // [environment, number]: the current observations
	last  []uint8     // the previous action; shown.Actions for none
	paid  []float64   // and its reward
	over  []ending
	idle  []bool
	final []float64 // [environment, number]: the last observation of a truncated episode
	known []bool    // whether final is set
	at    int       // number of steps so far

	scales []scale   // by field of real numbers
	gain   scale     // of the discounted sum of rewards up to a step, which is about as large as the critic's targets
	sums   []float64 // by environment: the discounted sum so far

	// By environment and step: the observation before the step, its action and its reward.
	kept    []float64
	done    []uint8
	rewards []float64
	ends    []bool
	best    []uint8
}

func newElsewhere(s *Settings, shown Shown, act func(context.Context, []uint8) (*StepResult, error)) *elsewhere {
	n, w := s.Envs*s.Steps, shown.width()
	o := &elsewhere{shown: shown, envs: s.Envs, steps: s.Steps, act: act, discount: s.Discount, now: make([]float64, s.Envs*w), last: make([]uint8, s.Envs),
		paid: make([]float64, s.Envs), over: make([]ending, s.Envs), idle: make([]bool, s.Envs), final: make([]float64, s.Envs*w), known: make([]bool, s.Envs),
		scales: make([]scale, shown.Measured), sums: make([]float64, s.Envs),
		kept: make([]float64, n*w), done: make([]uint8, n), rewards: make([]float64, n), ends: make([]bool, n), best: make([]uint8, n)}
	for _, size := range shown.Sizes {
		o.base = append(o.base, o.actionRow)
		o.actionRow += int32(size)
	}
	o.endRow = o.actionRow + int32(shown.Actions) + 1
	return o
}

// keptBytes returns the memory in bytes of a task's steps.
func keptBytes(s *Settings, shown *Shown) int64 {
	return run.Product(int64(s.Envs), int64(s.Steps), 8*int64(shown.width())+11)
}

// senses: real-valued fields and the last reward are numbers, everything else is a row of the
// table.
func (o *elsewhere) senses() senses {
	return senses{inputs: len(o.base) + 2, rows: int(o.endRow) + 2, measured: o.shown.Measured + 1, actions: o.shown.Actions}
}

// rows checks the observations of all environments. With missing, an observation may be nil.
func (o *elsewhere) rows(name string, observed [][]float64, missing bool) error {
	if len(observed) != o.envs {
		return fmt.Errorf("%s: want a list of %d observations", name, o.envs)
	}
	for e, row := range observed {
		if missing && row == nil {
			continue
		}
		if len(row) != o.shown.width() {
			return fmt.Errorf("%s: that of environment %d has %d numbers, want %d", name, e, len(row), o.shown.width())
		}
		for i, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s: field %d of environment %d is %v", name, i, e, v)
			}
			if o.shown.Sizes != nil && (v < 0 || v >= float64(o.shown.Sizes[i]) || v != math.Trunc(v)) {
				return fmt.Errorf("%s: field %d of environment %d is %v, want a whole number from 0 to %d", name, i, e, v, o.shown.Sizes[i]-1)
			}
		}
	}
	return nil
}

func (o *elsewhere) begin(int64, uint64) error {
	o.at = 0
	clear(o.scales)
	clear(o.sums)
	o.gain = scale{}
	o.rest()
	o.take(o.now, o.first)
	return nil
}

// rest clears the previous action and reward of every environment.
func (o *elsewhere) rest() {
	for e := range o.last {
		o.last[e], o.paid[e], o.over[e] = uint8(o.shown.Actions), 0, goesOn
	}
}

// take copies the observations that are not nil, and adds them to the scales.
func (o *elsewhere) take(to []float64, observed [][]float64) {
	w := o.shown.width()
	for e, row := range observed {
		copy(to[e*w:][:w], row)
	}
	if o.shown.Sizes == nil {
		for _, row := range observed {
			for i, v := range row {
				o.scales[i].add(v)
			}
		}
	}
}

func (o *elsewhere) show(rows []int32, numbers []float32) { o.shows(o.now, rows, numbers) }

func (o *elsewhere) shows(seen []float64, rows []int32, numbers []float32) {
	w, inputs, measured := o.shown.width(), len(o.base)+2, o.shown.Measured+1
	for e := range o.envs {
		row, values := rows[e*inputs:][:inputs], numbers[e*measured:][:measured]
		for i, first := range o.base {
			row[i] = first + int32(seen[e*w+i])
		}
		row[inputs-2], row[inputs-1] = o.actionRow+int32(o.last[e]), o.endRow+notOver
		if o.over[e] != goesOn {
			row[inputs-1] = o.endRow + isOver
		}
		for i := range o.scales {
			values[i] = o.scales[i].centred(seen[e*w+i])
		}
		values[measured-1] = o.gain.shrunk(o.paid[e])
	}
}

func (o *elsewhere) showLast(rows []int32, numbers []float32) {
	w := o.shown.width()
	seen := append([]float64(nil), o.now...)
	for e, end := range o.over {
		switch {
		case end == cut && o.known[e]:
			copy(seen[e*w:][:w], o.final[e*w:][:w])
		case end == cut:
			copy(seen[e*w:][:w], o.kept[(e*o.steps+o.at-1)*w:][:w])
		}
	}
	o.shows(seen, rows, numbers)
	// the input of an episode that continues
	inputs := len(o.base) + 2
	for e := range o.envs {
		rows[(e+1)*inputs-1] = o.endRow + notOver
	}
}

func (o *elsewhere) step(ctx context.Context, actions []uint8) error {
	w := o.shown.width()
	for e, a := range actions {
		at := e*o.steps + o.at
		copy(o.kept[at*w:][:w], o.now[e*w:][:w])
		o.last[e] = a
	}
	t, err := o.act(ctx, actions)
	if err != nil {
		return err
	}
	for e := range o.envs {
		o.idle[e], o.over[e], o.paid[e] = marked(t.Idle, e), goesOn, t.Rewards[e]
		switch {
		case o.idle[e]:
			// an idle step has no action and no reward
			o.paid[e], o.last[e] = 0, uint8(o.shown.Actions)
		case marked(t.Terminated, e):
			o.over[e] = ended
		case marked(t.Truncated, e):
			o.over[e] = cut
		}
		if o.known[e] = t.FinalObs != nil && t.FinalObs[e] != nil; o.known[e] {
			copy(o.final[e*w:][:w], t.FinalObs[e])
		}
		at := e*o.steps + o.at
		o.done[at], o.rewards[at], o.ends[at] = o.last[e], o.paid[e], o.over[e] != goesOn
		if !o.idle[e] {
			o.sums[e] = o.discount*o.sums[e] + o.paid[e]
			o.gain.add(o.sums[e])
		}
		if o.over[e] == ended {
			o.sums[e] = 0
		}
	}
	o.take(o.now, t.Observed)
	o.at++
	return nil
}

func (o *elsewhere) led(e int) (reward float32, end ending, counts bool) {
	return o.gain.shrunk(o.paid[e]), o.over[e], !o.idle[e]
}

func (o *elsewhere) recall() int {
	o.rest()
	return o.at
}

func (o *elsewhere) turn(t int) {
	w := o.shown.width()
	for e := range o.envs {
		at := e*o.steps + t
		copy(o.now[e*w:][:w], o.kept[at*w:][:w])
		if t > 0 {
			o.last[e], o.paid[e], o.over[e] = o.done[at-1], o.rewards[at-1], goesOn
			if o.ends[at-1] {
				o.over[e] = ended
			}
		}
	}
}

func (o *elsewhere) label(e, t int, best uint8) { o.best[e*o.steps+t] = best }

// scale holds the mean and the squared deviations (Welford) of the numbers so far.
type scale struct{ n, mean, squares float64 }

func (s *scale) add(v float64) {
	s.n++
	d := v - s.mean
	s.mean += d / s.n
	s.squares += d * (v - s.mean)
}

// farthest limits the network's inputs, in units: numbers beyond ±10 units are clipped.
const farthest = 10

// centred returns the distance from the mean in standard deviations.
func (s *scale) centred(v float64) float32 {
	return inUnits(v-s.mean, math.Sqrt(s.squares/max(1, s.n)))
}

// shrunk returns v divided by the root mean square of the numbers so far.
func (s *scale) shrunk(v float64) float32 {
	return inUnits(v, math.Hypot(s.mean, math.Sqrt(s.squares/max(1, s.n))))
}

func inUnits(v, unit float64) float32 {
	if unit > 0 {
		v /= unit
	}
	if math.IsNaN(v) { // numbers whose squares overflow have an infinite unit
		return 0
	}
	return float32(max(-farthest, min(farthest, v)))
}
