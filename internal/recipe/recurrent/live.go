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

// What a reader could break: all that is told of a step is judged by CheckStep before anything
// changes, so that a program that was told of its mistake can say the step again.

// Shown is what environments of another program show and do. An observation has as many whole
// numbers as there are Sizes, each from 0 to its size; or, without sizes, Measured numbers.
type Shown struct {
	Sizes    []int
	Measured int
	Actions  int
}

// width is how many numbers an observation has.
func (s *Shown) width() int {
	if s.Sizes != nil {
		return len(s.Sizes)
	}
	return s.Measured
}

// check refuses what no history can hold.
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

// Told is what a step led to in every environment. Observations are those that the next action is
// chosen by: where an episode is over, the first of the next one.
type Told struct {
	Observed [][]float64
	Rewards  []float64
	Ended    []bool // nothing follows; nil: nowhere
	Cut      []bool // a limit of time ended the episode; nil: nowhere
	// Last has what a cut episode showed last. Without it, nil or nil of an environment, the critic
	// judges what would have followed by the observation before.
	Last [][]float64
	// Idle marks environments whose step was none: it began an episode, whatever the action. nil:
	// nowhere.
	Idle []bool
}

// LiveDefault learns tasks of many kinds of environments in a minute of a core.
func LiveDefault() Settings {
	s := Default()
	s.Envs, s.Rate, s.Parts = 8, 1e-3, 2
	return s
}

// CheckLive refuses what no learner can follow.
func CheckLive(s *Settings, shown *Shown) error {
	if err := s.check(); err != nil {
		return err
	}
	return shown.check()
}

// Live is a learner whose environments another program runs. It belongs to one goroutine.
type Live struct {
	learner *learner
	there   *elsewhere
	seed    uint64
}

// NewLive compiles a learner. act is called with what every environment is to do, and returns what
// that led to, which CheckStep has not refused.
func NewLive(dev kernel.Device, s Settings, shown Shown, seed uint64, act func(ctx context.Context, actions []uint8) (*Told, error)) (*Live, error) {
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

// Close gives back what the learner holds.
func (l *Live) Close() error { return l.learner.close() }

// Check refuses observations that begin a task: a row for each environment.
func (l *Live) Check(observed [][]float64) error { return l.there.rows("obs", observed, false) }

// CheckStep refuses what no step can lead to.
func (l *Live) CheckStep(t *Told) error {
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
	for i, marks := range [][]bool{t.Ended, t.Cut, t.Idle} {
		if marks != nil && len(marks) != w.envs {
			return fmt.Errorf("%s: want a list of %d truth values", []string{"end", "cut", "idle"}[i], w.envs)
		}
	}
	for e := range w.envs {
		switch over := marked(t.Ended, e) || marked(t.Cut, e); {
		case over && marked(t.Idle, e):
			return fmt.Errorf("idle: environment %d only began an episode, and its episode is over", e)
		case !over && len(t.Last) == w.envs && t.Last[e] != nil:
			return fmt.Errorf("last: the episode of environment %d goes on: want null", e)
		}
	}
	if t.Last != nil {
		return w.rows("last", t.Last, true)
	}
	return nil
}

// marked tells whether an environment is among those that are marked; nil: none is.
func marked(marks []bool, e int) bool { return marks != nil && marks[e] }

// Learn lives through a task from its environments' first observations on, and returns the actions
// that the learner of the end holds best: of each environment, by step.
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

// Rows of the table: a row for each value of each field, then actions and none, then whether the
// episode goes on.
const (
	notOver = 0
	isOver  = 1
)

// elsewhere are the environments of another program. All that they show is kept until the learner
// has labelled it.
type elsewhere struct {
	shown       Shown
	envs, steps int
	act         func(ctx context.Context, actions []uint8) (*Told, error)
	discount    float64
	base        []int32 // first row of each field
	actionRow   int32
	endRow      int32

	first [][]float64 // what a task begins with
	now   []float64   // [environment, number]: what is shown
	last  []uint8     // the action before; shown.Actions for none
	paid  []float64   // and what it paid
	over  []ending
	idle  []bool
	final []float64 // [environment, number]: what a cut episode showed last
	known []bool    // final is
	at    int       // steps that were taken

	scales []scale   // by measured number
	gain   scale     // of what was paid up to a step, discounted: as large as what the critic learns
	sums   []float64 // by environment: that sum so far

	// By environment and step: what was shown before it, what was done and what that paid.
	kept    []float64
	done    []uint8
	rewards []float64
	ends    []bool
	best    []uint8
}

func newElsewhere(s *Settings, shown Shown, act func(context.Context, []uint8) (*Told, error)) *elsewhere {
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

// keptBytes is what elsewhere keeps of a task.
func keptBytes(s *Settings, shown *Shown) int64 {
	return run.Product(int64(s.Envs), int64(s.Steps), 8*int64(shown.width())+11)
}

// senses: what an observation measures, and what the last action paid, are numbers.
func (o *elsewhere) senses() senses {
	return senses{inputs: len(o.base) + 2, rows: int(o.endRow) + 2, measured: o.shown.Measured + 1, actions: o.shown.Actions}
}

// rows refuses what is not an observation of every environment; of some it may be missing.
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

// rest leaves nothing before the next step.
func (o *elsewhere) rest() {
	for e := range o.last {
		o.last[e], o.paid[e], o.over[e] = uint8(o.shown.Actions), 0, goesOn
	}
}

// take copies observations, where they are.
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
		row, beside := rows[e*inputs:][:inputs], numbers[e*measured:][:measured]
		for i, first := range o.base {
			row[i] = first + int32(seen[e*w+i])
		}
		row[inputs-2], row[inputs-1] = o.actionRow+int32(o.last[e]), o.endRow+notOver
		if o.over[e] != goesOn {
			row[inputs-1] = o.endRow + isOver
		}
		for i := range o.scales {
			beside[i] = o.scales[i].centred(seen[e*w+i])
		}
		beside[measured-1] = o.gain.shrunk(o.paid[e])
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
	// as if the episode had gone on
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
			// neither paid nor done
			o.paid[e], o.last[e] = 0, uint8(o.shown.Actions)
		case marked(t.Ended, e):
			o.over[e] = ended
		case marked(t.Cut, e):
			o.over[e] = cut
		}
		if o.known[e] = t.Last != nil && t.Last[e] != nil; o.known[e] {
			copy(o.final[e*w:][:w], t.Last[e])
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

// scale is the size of the numbers that came by: their mean, their spread (Welford) and how far
// they are from zero.
type scale struct{ n, mean, squares float64 }

func (s *scale) add(v float64) {
	s.n++
	d := v - s.mean
	s.mean += d / s.n
	s.squares += d * (v - s.mean)
}

// farthest bounds what a network is shown: a number of more than ten units is as far as ten.
const farthest = 10

// centred is a number by its distance from the mean, in spreads.
func (s *scale) centred(v float64) float32 {
	return inUnits(v-s.mean, math.Sqrt(s.squares/max(1, s.n)))
}

// shrunk is a number in units of how far those that came by are from zero.
func (s *scale) shrunk(v float64) float32 {
	return inUnits(v, math.Hypot(s.mean, math.Sqrt(s.squares/max(1, s.n))))
}

func inUnits(v, unit float64) float32 {
	if unit > 0 {
		v /= unit
	}
	if math.IsNaN(v) { // numbers so large that their squares are infinite tell nothing apart
		return 0
	}
	return float32(max(-farthest, min(farthest, v)))
}
