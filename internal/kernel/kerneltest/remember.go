package kerneltest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"haul/internal/kernel"
)

// The judge takes longer than any device that it judges, and its answer is the same whoever it is
// for. Here a process keeps the answers: devices that are asked the same, one instruction set after
// another, are compared with one answer.
//
// What a reader could break: a key must hold all that the judge reads: the program with every op
// and tensor, each value that goes in, control, state, and what the judge rounds by. Whoever takes
// an answer must not write to its slices.

// oracle is a judge.
type oracle struct {
	kernel.Device
	unit float64 // by which it rounds operands; 0: not at all
}

var (
	answers   sync.Map // key of a trial: the judge's outcome, as it was read
	approvals sync.Map // key of routes: their choices were found defensible
)

// asked is run on a judge.
func (c *trial) asked(t *testing.T, dev oracle, absolute bool) (*recording, outcome) {
	t.Helper()
	r := c.on(dev, absolute)
	k := r.key("answer", dev.unit, c.control, c.state)
	if kept, ok := answers.Load(k); ok {
		return r, kept.(answer).outcome()
	}
	of := c.answer(t, dev.Device, r)
	answers.Store(k, of.kept())
	return r, of
}

// answer is an outcome in the type that it was read in, which takes half the room.
type answer struct {
	floats map[string][]float32
	ints   map[string][]int32
}

func (o outcome) kept() answer {
	a := answer{map[string][]float32{}, maps.Clone(o.ints)}
	for name, values := range o.floats {
		a.floats[name] = make([]float32, len(values))
		for i, v := range values {
			a.floats[name][i] = float32(v)
		}
	}
	return a
}

func (a answer) outcome() outcome {
	o := outcome{map[string][]float64{}, maps.Clone(a.ints)}
	for name, values := range a.floats {
		o.floats[name] = widen(values)
	}
	return o
}

// key is a digest of the recording and of more that an answer depends on.
func (r *recording) key(more ...any) [sha256.Size]byte {
	h := sha256.New()
	digest(h, reflect.ValueOf(more))
	digest(h, reflect.ValueOf(r.prog))
	digest(h, reflect.ValueOf(r.weights))
	for _, in := range r.inputs {
		digest(h, reflect.ValueOf(in.t))
		digest(h, reflect.ValueOf(in.values))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// digest writes a value whole, whatever it points at.
func digest(h hash.Hash, v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		h.Write([]byte{0})
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.Write([]byte{0})
			return
		}
		fmt.Fprint(h, v.Elem().Type())
		digest(h, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			digest(h, v.Field(i))
		}
	case reflect.Slice:
		binary.Write(h, binary.LittleEndian, int64(v.Len()))
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
	default: // numbers, text and maps of them, which fmt sorts
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
