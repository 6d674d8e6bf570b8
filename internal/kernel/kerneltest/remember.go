package kerneltest

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"haul/internal/kernel"
)

// The oracle takes longer than any device that is compared with it, and its answer is the same
// whoever asks. Here a process keeps the answers: devices that are asked the same, one instruction
// set after another, are compared with one answer.
//
// What a reader could break: a digest must hold all that the reference reads, in the order of the
// calls: programs with every op and tensor, each value that goes in, control, state, and what the
// reference rounds by.

// oracle is the reference as a device, with a memory. Calls that change something are digested and
// put off; a read is answered by what was read before after the same calls, or else by making them.
type oracle struct {
	dev  kernel.Device
	hash maphash.Hash
	todo []func() error
	made int // stores and runners so far, which are known by number
}

// question is a read after calls of that digest.
type question struct {
	calls uint64
	what  string
}

var (
	seed      = maphash.MakeSeed()
	answers   sync.Map // question: any
	approvals sync.Map // digest of routes: their choices were found defensible
)

// newOracle remembers what dev answers; unit is what it rounds operands by, 0 where it does not.
func newOracle(dev kernel.Device, unit float64) *oracle {
	o := &oracle{dev: dev}
	o.hash.SetSeed(seed)
	digest(&o.hash, reflect.ValueOf(unit))
	return o
}

// later puts a call off.
func (o *oracle) later(call func() error, what ...any) error {
	digest(&o.hash, reflect.ValueOf(what))
	o.todo = append(o.todo, call)
	return nil
}

// ask answers a read: from memory, or by making every call that was put off and then this one.
func ask[T any](o *oracle, what string, read func() (T, error)) (T, error) {
	q := question{o.hash.Sum64(), what}
	if kept, ok := answers.Load(q); ok {
		return kept.(T), nil
	}
	for _, call := range o.todo {
		if err := call(); err != nil {
			var none T
			return none, err
		}
	}
	o.todo = o.todo[:0]
	got, err := read()
	if err == nil {
		answers.Store(q, got)
	}
	return got, err
}

func (o *oracle) Name() string               { return o.dev.Name() }
func (o *oracle) ShardSize(nodes int) int    { return o.dev.ShardSize(nodes) }
func (o *oracle) Counters() *kernel.Counters { return o.dev.Counters() }
func (o *oracle) Close() error               { return o.dev.Close() }

// rememberedStore is a store of an oracle; the reference's own is there once it is needed.
type rememberedStore struct {
	*oracle
	kernel.Store
	at, length int
}

func (o *oracle) NewStore(l *kernel.Layout, train bool) (kernel.Store, error) {
	o.made++
	s := &rememberedStore{oracle: o, at: o.made, length: l.Len}
	return s, o.later(func() (err error) {
		s.Store, err = o.dev.NewStore(l, train)
		return err
	}, "store", l, train)
}

func (s *rememberedStore) WriteWeights(src []float32) error {
	src = slices.Clone(src)
	return s.later(func() error { return s.Store.WriteWeights(src) }, "weights", s.at, src)
}

func (s *rememberedStore) WriteMoments(m, v []float32) error {
	m, v = slices.Clone(m), slices.Clone(v)
	return s.later(func() error { return s.Store.WriteMoments(m, v) }, "moments", s.at, m, v)
}

func (s *rememberedStore) CopyWeights(from kernel.Store) error {
	f := from.(*rememberedStore)
	return s.later(func() error { return s.Store.CopyWeights(f.Store) }, "copy", s.at, f.at)
}

func (s *rememberedStore) ReadWeights(dst []float32) error {
	got, err := ask(s.oracle, fmt.Sprint("weights ", s.at), func() ([]float32, error) {
		out := make([]float32, s.length)
		return out, s.Store.ReadWeights(out)
	})
	copy(dst, got)
	return err
}

func (s *rememberedStore) ReadMoments(m, v []float32) error {
	got, err := ask(s.oracle, fmt.Sprint("moments ", s.at), func() ([2][]float32, error) {
		m, v := make([]float32, s.length), make([]float32, s.length)
		return [2][]float32{m, v}, s.Store.ReadMoments(m, v)
	})
	copy(m, got[0])
	copy(v, got[1])
	return err
}

func (s *rememberedStore) Close() error { return nil }

// rememberedRunner is a runner of an oracle.
type rememberedRunner struct {
	*oracle
	kernel.Runner
	at int
}

func (o *oracle) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	o.made++
	r := &rememberedRunner{oracle: o, at: o.made}
	var stores []int
	for _, s := range sets {
		stores = append(stores, s.(*rememberedStore).at)
	}
	return r, o.later(func() (err error) {
		own := make([]kernel.Store, len(sets))
		for i, s := range sets {
			own[i] = s.(*rememberedStore).Store
		}
		r.Runner, err = o.dev.Compile(p, own)
		return err
	}, "compile", p, stores)
}

func (r *rememberedRunner) Run() error {
	return r.later(func() error { return r.Runner.Run() }, "run", r.at)
}

func (r *rememberedRunner) SetControl(c kernel.Control) error {
	return r.later(func() error { return r.Runner.SetControl(c) }, "control", r.at, c)
}

func (r *rememberedRunner) SetState(s kernel.State) error {
	return r.later(func() error { return r.Runner.SetState(s) }, "state", r.at, s)
}

func (r *rememberedRunner) WriteBatch(t *kernel.Tensor, src any) error {
	switch values := src.(type) {
	case []float32:
		src = slices.Clone(values)
	case []int32:
		src = slices.Clone(values)
	}
	return r.later(func() error { return r.Runner.WriteBatch(t, src) }, "write", r.at, t, src)
}

func (r *rememberedRunner) ReadBatch(t *kernel.Tensor, dst any) error {
	what := fmt.Sprint("batch ", r.at, " ", t.ID, " ", t.Name)
	if values, ok := dst.([]int32); ok {
		got, err := ask(r.oracle, what, func() ([]int32, error) {
			out := make([]int32, len(values))
			return out, r.Runner.ReadBatch(t, out)
		})
		copy(values, got)
		return err
	}
	values := dst.([]float32)
	got, err := ask(r.oracle, what, func() ([]float32, error) {
		out := make([]float32, len(values))
		return out, r.Runner.ReadBatch(t, out)
	})
	copy(values, got)
	return err
}

func (r *rememberedRunner) ReadGrad(dst []float32) error {
	got, err := ask(r.oracle, fmt.Sprint("gradient ", r.at), func() ([]float32, error) {
		out := make([]float32, len(dst))
		return out, r.Runner.ReadGrad(out)
	})
	copy(dst, got)
	return err
}

func (r *rememberedRunner) State() (kernel.State, error) {
	got, err := ask(r.oracle, fmt.Sprint("state ", r.at), func() (kernel.State, error) { return r.Runner.State() })
	got.Scalars = maps.Clone(got.Scalars)
	return got, err
}

// TakeMetrics reads and clears: the clearing is put off where the reading was remembered.
func (r *rememberedRunner) TakeMetrics() (kernel.Metrics, error) {
	took := false
	got, err := ask(r.oracle, fmt.Sprint("metrics ", r.at), func() (kernel.Metrics, error) {
		took = true
		return r.Runner.TakeMetrics()
	})
	r.later(func() error {
		if took {
			return nil
		}
		_, err := r.Runner.TakeMetrics()
		return err
	}, "metrics", r.at)
	return got, err
}

func (r *rememberedRunner) FirstBad() (string, error) {
	return ask(r.oracle, fmt.Sprint("bad ", r.at), func() (string, error) { return r.Runner.FirstBad() })
}

func (r *rememberedRunner) Close() error { return nil }

// key is a digest of the recording and of more that an answer depends on.
func (r *recording) key(more ...any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	digest(&h, reflect.ValueOf(more))
	digest(&h, reflect.ValueOf(r.prog))
	digest(&h, reflect.ValueOf(r.weights))
	for _, in := range r.inputs {
		digest(&h, reflect.ValueOf(in.t))
		digest(&h, reflect.ValueOf(in.values))
	}
	return h.Sum64()
}

// digest writes a value whole, whatever it points at.
func digest(h *maphash.Hash, v reflect.Value) {
	number := func(n uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}
	switch v.Kind() {
	case reflect.Invalid:
		h.WriteByte(0)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.WriteByte(0)
			return
		}
		h.WriteString(v.Elem().Type().String())
		digest(h, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			digest(h, v.Field(i))
		}
	case reflect.Slice:
		number(uint64(v.Len()))
		switch v.Type().Elem().Kind() {
		case reflect.Float32, reflect.Int32, reflect.Uint32:
			if v.Len() > 0 {
				h.Write(unsafe.Slice((*byte)(v.UnsafePointer()), 4*v.Len()))
			}
		default:
			for i := range v.Len() {
				digest(h, v.Index(i))
			}
		}
	case reflect.Func, reflect.Chan:
		if !v.IsNil() {
			panic("kerneltest: an op holds more than data")
		}
	case reflect.Bool:
		number(map[bool]uint64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		number(v.Uint())
	case reflect.Float32, reflect.Float64:
		number(math.Float64bits(v.Float()))
	case reflect.String:
		number(uint64(v.Len()))
		h.WriteString(v.String())
	default: // maps of numbers and text, which fmt sorts, and arrays
		fmt.Fprintf(h, "%v;", v)
	}
}

// stream is a sequence of normals, drawn as far as somebody has asked.
type stream struct {
	mu     sync.Mutex
	random *rand.Rand
	values []float32
}

var streams sync.Map // seed of a trial and a name: *stream

// drawn are the first n values of a seed's stream, for reading.
func drawn(seed uint64, n int) []float32 {
	at, ok := streams.Load(seed)
	if !ok {
		at, _ = streams.LoadOrStore(seed, &stream{random: rand.New(rand.NewPCG(seed, 1))})
	}
	s := at.(*stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.values) < n {
		s.values = append(s.values, float32(s.random.NormFloat64()))
	}
	return s.values[:n:n]
}
