package comm_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"haul/internal/comm"
	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/rng"
)

const (
	rows, shard = 16, 2
	chunk       = 4096
)

// layer holds the sizes of a linear layer with several chunks of weights for the optimizer. The
// number of chunks is below eight, the largest number of ranks.
type layer struct {
	outputs, inputs int
	side            int // of Muon's blocks
}

// The first layer is cut into chunks, the last of which is short. The second has Muon's blocks,
// some of which cross the ends of chunks.
var layers = []layer{{97, 211, 0}, {96, 192, 48}}

// learner runs one rank's step: the gradient of a linear layer from given inputs.
type learner struct {
	dev    *cpu.Device
	run    kernel.Runner
	store  kernel.Store
	x, dy  *kernel.Tensor
	from   int // its first row
	rows   int
	length int
}

func newLearner(w *comm.World, workers int, c layer) (*learner, error) {
	dev, err := cpu.Open(cpu.Options{Workers: workers, ShardRows: shard})
	if err != nil {
		return nil, err
	}
	l := &kernel.Layout{}
	weight := l.Params[l.Add("w", kernel.InitUniform, c.inputs, c.outputs, c.inputs)].Offset
	bias := l.Params[l.Add("bias", kernel.InitUniform, c.inputs, c.outputs)].Offset
	out := &learner{dev: dev, rows: rows / w.Ranks(), from: rows / w.Ranks() * w.Number(), length: l.Len}
	tensor := func(name string, space kernel.Space, at int, shape ...int) *kernel.Tensor {
		return &kernel.Tensor{Name: name, Space: space, Shape: shape, Stride: shape[len(shape)-1], Offset: at}
	}
	out.x, out.dy = tensor("x", kernel.Batch, 0, shard, c.inputs), tensor("dy", kernel.Batch, 0, shard, c.outputs)
	dw, dbias := tensor("dw", kernel.Grad, weight, c.outputs, c.inputs), tensor("dbias", kernel.Grad, bias, c.outputs)
	p := &kernel.Program{Name: "update", Batch: out.rows, Shard: shard, Layout: l, Sets: 1, Share: w.Share(), Tensors: []*kernel.Tensor{out.x, out.dy, dw, dbias},
		PerShard: []kernel.Op{&kernel.LinearGradW{DW: dw, DBias: dbias, DY: out.dy, X: out.x}}, Once: []kernel.Op{&kernel.Reduce{Layout: l}}}
	for i, t := range p.Tensors {
		t.ID = i
	}
	if w != nil {
		p.Once = append(p.Once, &kernel.Exchange{Layout: l, Peer: w})
	}
	p.Once = append(p.Once, &kernel.AdamW{Layout: l, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.01, MaxNorm: 1, Side: c.side})
	if out.store, err = dev.NewStore(l, true); err != nil {
		return nil, err
	}
	if out.run, err = dev.Compile(p, []kernel.Store{out.store}); err != nil {
		return nil, err
	}
	first := make([]float32, l.Len)
	fill(first, 1<<40)
	return out, errors.Join(out.store.WriteWeights(first), out.run.SetControl(kernel.Control{LearningRate: 0.01, Temperature: 1}))
}

// fill draws numbers of very different magnitudes.
func fill(v []float32, from uint64) {
	for i := range v {
		w := rng.At(11, from+uint64(i), 0, rng.Learner)
		v[i] = (rng.Float(w[0]) - 0.5) * float32(math.Pow(10, float64(w[1]%5)-2))
	}
}

// step runs an update with this rank's rows of the batch. The row `poison` of the whole batch is
// not finite; -1: all rows are finite.
func (l *learner) step(number, poison int) error {
	for _, in := range []*kernel.Tensor{l.x, l.dy} {
		v := make([]float32, l.rows*in.Cols())
		fill(v, uint64(in.ID+1)<<32+uint64((number*rows+l.from)*in.Cols()))
		if row := poison - l.from; row >= 0 && row < l.rows {
			v[row*in.Cols()] = float32(math.Inf(1))
		}
		if err := l.run.WriteBatch(in, v); err != nil {
			return err
		}
	}
	return l.run.Run()
}

// kept is the state after an update.
type kept struct {
	Weights, M, V []float32
	State         kernel.State
	Metrics       kernel.Metrics
}

func (l *learner) keep() (k kept, err error) {
	k.Weights, k.M, k.V = make([]float32, l.length), make([]float32, l.length), make([]float32, l.length)
	err = errors.Join(l.store.ReadWeights(k.Weights), l.store.ReadMoments(k.M, k.V))
	var e1, e2 error
	k.State, e1 = l.run.State()
	k.Metrics, e2 = l.run.TakeMetrics()
	return k, errors.Join(err, e1, e2)
}

// differs names the fields of two states that differ in a bit; "" if none does.
func (k *kept) differs(want *kept) string {
	bits := func(a, b []float32) bool {
		return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
	}
	norms := k.Metrics.GradNorm == want.Metrics.GradNorm || math.IsNaN(k.Metrics.GradNorm) && math.IsNaN(want.Metrics.GradNorm)
	switch {
	case !bits(k.Weights, want.Weights):
		return "weights"
	case !bits(k.M, want.M):
		return "first moments"
	case !bits(k.V, want.V):
		return "second moments"
	case !norms || k.Metrics.BadStep != want.Metrics.BadStep || k.Metrics.Steps != want.Metrics.Steps:
		return fmt.Sprintf("metrics %+v, want %+v,", k.Metrics, want.Metrics)
	case fmt.Sprint(k.State) != fmt.Sprint(want.State):
		return fmt.Sprintf("state %+v, want %+v,", k.State, want.State)
	}
	return ""
}

// learn runs f on n ranks at once, each with a separate learner. With n = 1, the World is nil.
func learn(t *testing.T, n int, c layer, f func(w *comm.World, l *learner) error) {
	t.Helper()
	worlds := []*comm.World{nil}
	if n > 1 {
		worlds = comm.Local(n)
	}
	var all sync.WaitGroup
	for _, w := range worlds {
		all.Go(func() {
			l, err := newLearner(w, 1+w.Number()%2, c)
			if err == nil {
				defer l.dev.Close()
				err = f(w, l)
			}
			if err == nil {
				err = w.Close() // fails if a rank has made fewer calls than the others
			}
			if err != nil {
				t.Errorf("rank %d of %d: %v", w.Number(), n, err)
				w.Fail(err)
			}
		})
	}
	all.Wait()
}

// TestRanksShareTheUpdate: five updates by 1, 2, 4 and 8 ranks leave the same weights, moments,
// norms and state, bit for bit. Until moments are gathered, each rank holds those of its own piece
// only. With Muon's blocks each rank has all moments, and the second ones stay zero.
func TestRanksShareTheUpdate(t *testing.T) {
	for _, c := range layers {
		t.Run(fmt.Sprint("side ", c.side), func(t *testing.T) { testRanksShareTheUpdate(t, c) })
	}
}

func testRanksShareTheUpdate(t *testing.T, c layer) {
	var want kept
	for _, n := range []int{1, 2, 4, 8} {
		learn(t, n, c, func(w *comm.World, l *learner) error {
			for number := range 5 {
				if err := l.step(number, -1); err != nil {
					return err
				}
			}
			grad, m, v := make([]float32, l.length), make([]float32, l.length), make([]float32, l.length)
			if err := errors.Join(l.run.ReadGrad(grad), l.store.ReadMoments(m, v)); err != nil {
				return err
			}
			from, to := w.Share().Piece(l.length, chunk)
			if c.side > 0 {
				from, to = c.outputs*c.inputs, l.length
			}
			for i := range v {
				if own := i >= from && i < to; !own && v[i] != 0 || own && v[i] == 0 && grad[i] != 0 {
					return fmt.Errorf("moment %d is %v before any was gathered; this rank's piece is %d to %d", i, v[i], from, to)
				}
			}
			if err := l.run.GatherMoments(); err != nil {
				return err
			}
			got, err := l.keep()
			if err != nil {
				return err
			}
			if n == 1 {
				want = got
			}
			if what := got.differs(&want); what != "" {
				return errors.New(what + " differ from those of one process")
			}
			return nil
		})
	}
	if want.Metrics.GradNorm < 5 || want.State.Step != 5 {
		t.Errorf("%+v, %+v: five updates that are clipped were meant", want.Metrics, want.State)
	}
}

// TestRanksSkipTheSameUpdate: after a row that is not finite, on any rank, all ranks skip that
// update and all later ones: weights, moments and counters stay unchanged.
func TestRanksSkipTheSameUpdate(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		for i, poison := range []int{0, rows - 1, 0} {
			learn(t, n, layers[i/2], func(w *comm.World, l *learner) error {
				for number := range 2 {
					if err := l.step(number, -1); err != nil {
						return err
					}
				}
				if err := l.run.GatherMoments(); err != nil {
					return err
				}
				want, err := l.keep()
				if err != nil {
					return err
				}
				if err := errors.Join(l.step(2, poison), l.step(3, -1), l.run.GatherMoments()); err != nil {
					return err
				}
				got, err := l.keep()
				if err != nil {
					return err
				}
				if got.Metrics.BadStep != 3 {
					return fmt.Errorf("row %d is not finite in update 3, and %d is said to be bad", poison, got.Metrics.BadStep)
				}
				want.Metrics, want.State.Instances = got.Metrics, got.State.Instances // this rank's rows were drawn
				if what := got.differs(&want); what != "" {
					return errors.New(what + " moved in a bad update, or after it")
				}
				return nil
			})
		}
	}
}
