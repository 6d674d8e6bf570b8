package kerneltest

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
)

// trial is one op between Batch tensors, recorded afresh for each device since shapes follow its
// shard.
type trial struct {
	what    string
	nodes   int
	batch   int // 0: batchFor the device on trial
	group   int // rows in turn that a shard does not part; 0: 1
	control kernel.Control
	state   kernel.State
	linear  bool    // S is Σ|a||b|
	amplify float64 // 0: 1
	rounds  bool    // the op multiplies matrices, whose operands a device may round
	halved  bool    // numbers that go in have half precision: what that changes shows how much rounding may
	record  func(r *recording)
}

// recording is a program with the values that go in and the names of what comes out.
type recording struct {
	prog     *kernel.Program
	b, nodes int
	what     string
	absolute bool
	halved   bool
	inputs   []input
	outputs  []output
	weights  []float32
	grads    []output
}

type input struct {
	t      *kernel.Tensor
	values any
}

// output is a tensor to compare: k terms stand behind each element.
type output struct {
	t *kernel.Tensor
	k int
}

// outcome is what a device answered, by tensor name.
type outcome struct {
	floats map[string][]float64
	ints   map[string][]int32
}

func (r *recording) tensor(name string, ty kernel.Type, dims []int) *kernel.Tensor {
	t := &kernel.Tensor{Name: name, Type: ty, Space: kernel.Batch, Shape: append([]int{r.b}, dims...), ID: len(r.prog.Tensors)}
	t.Stride = t.Cols()
	r.prog.Tensors = append(r.prog.Tensors, t)
	return t
}

// normals are values that depend on the trial and the name alone.
func (r *recording) normals(name string, n int) []float32 {
	h := fnv.New64a()
	fmt.Fprint(h, r.what, name)
	out := slices.Clone(drawn(h.Sum64(), n))
	if r.absolute {
		for i, v := range out {
			out[i] = float32(math.Abs(float64(v)))
		}
	}
	return out
}

// coarse are normals of so few bits that products of two are exact in any precision.
func (r *recording) coarse(name string, n int) []float32 {
	out := r.normals(name, n)
	for i, v := range out {
		out[i] = float32(math.Round(float64(v)*4) / 4)
	}
	return out
}

func (r *recording) len(t *kernel.Tensor) int { return t.Len() / r.b * r.prog.Batch }

// data is a tensor that every shard reads whole.
func (r *recording) data(name string, values []int32) *kernel.Tensor {
	t := &kernel.Tensor{Name: name, Type: kernel.I32, Space: kernel.Data, Shape: []int{len(values)}, Stride: len(values), ID: len(r.prog.Tensors)}
	r.prog.Tensors = append(r.prog.Tensors, t)
	r.inputs = append(r.inputs, input{t, values})
	return t
}

// in is an input of standard normal values, a block of dims for each instance.
func (r *recording) in(name string, dims ...int) *kernel.Tensor {
	t := r.tensor(name, kernel.F32, dims)
	r.inputs = append(r.inputs, input{t, r.round(r.normals(name, r.len(t)))})
	return t
}

// round leaves the eleven bits of half precision of each number where the trial asks for that.
func (r *recording) round(values []float32) []float32 {
	if r.halved {
		for i, v := range values {
			fraction, exponent := math.Frexp(float64(v))
			values[i] = float32(math.Ldexp(math.RoundToEven(fraction*0x1p11)*0x1p-11, exponent))
		}
	}
	return values
}

// given is an input of stated values.
func (r *recording) given(name string, values []float32, dims ...int) *kernel.Tensor {
	t := r.tensor(name, kernel.F32, dims)
	r.inputs = append(r.inputs, input{t, values})
	return t
}

// givenInts is given for integers.
func (r *recording) givenInts(name string, values []int32, dims ...int) *kernel.Tensor {
	t := r.tensor(name, kernel.I32, dims)
	r.inputs = append(r.inputs, input{t, values})
	return t
}

// out is an output whose elements have k terms. It starts as noise, which an op that writes must
// not let through.
func (r *recording) out(name string, k int, dims ...int) *kernel.Tensor {
	t := r.in(name, dims...)
	r.outputs = append(r.outputs, output{t, k})
	return t
}

// outInts is an output of integers.
func (r *recording) outInts(name string, dims ...int) *kernel.Tensor {
	t := r.tensor(name, kernel.I32, dims)
	r.outputs = append(r.outputs, output{t, 0})
	return t
}

// columnsOf is a view of columns [from, to) of t.
func columnsOf(t *kernel.Tensor, from, to int) *kernel.Tensor {
	v := *t
	v.Shape = append([]int(nil), t.Shape...)
	v.Shape[len(v.Shape)-1] = to - from
	v.Offset, v.Parent = from, t
	return &v
}

// weight is a parameter of standard normal values.
func (r *recording) weight(name string, dims ...int) *kernel.Tensor {
	l := r.prog.Layout
	p := l.Params[l.Add(name, kernel.InitUniform, 1, dims...)]
	t := &kernel.Tensor{Name: name, Space: kernel.Weight, Shape: dims, Offset: p.Offset, Stride: dims[len(dims)-1], ID: len(r.prog.Tensors)}
	r.prog.Tensors = append(r.prog.Tensors, t)
	r.weights = append(r.weights, make([]float32, l.Len-len(r.weights))...)
	copy(r.weights[p.Offset:], r.round(r.normals(name, p.Len())))
	return t
}

// grad is where the gradient of a weight is summed, of k terms an element.
func (r *recording) grad(w *kernel.Tensor, k int) *kernel.Tensor {
	g := *w
	g.Name, g.Space, g.ID = "d."+w.Name, kernel.Grad, len(r.prog.Tensors)
	r.prog.Tensors = append(r.prog.Tensors, &g)
	r.grads = append(r.grads, output{&g, k})
	return &g
}

func (r *recording) do(op kernel.Op) { r.prog.PerShard = append(r.prog.PerShard, op) }

// on records the trial for dev.
func (c *trial) on(dev kernel.Device, absolute bool) *recording {
	group := max(1, c.group)
	b := min(upTo(max(1, dev.ShardSize(c.nodes)), group), c.batch)
	r := &recording{prog: &kernel.Program{Name: c.what, Batch: c.batch, Shard: b, Layout: &kernel.Layout{}, Sets: 1},
		b: b, nodes: c.nodes, what: c.what, absolute: absolute, halved: c.halved}
	c.record(r)
	if len(r.grads) > 0 {
		// Without a learning rate the optimizer only sums the gradient.
		r.prog.Once = append(r.prog.Once, optimizer(r.prog, kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, 1)...)
	}
	return r
}

// optimizer is a program's: a gradient over every steps, then o.
func optimizer(p *kernel.Program, o kernel.AdamW, every int) []kernel.Op {
	o.Layout = p.Layout
	return []kernel.Op{&kernel.Reduce{Layout: p.Layout, Every: every}, &o}
}

// scalar is a number that State carries.
func (r *recording) scalar(name string) *kernel.Tensor {
	t := &kernel.Tensor{Name: name, Type: kernel.F64, Space: kernel.Scalar, Shape: []int{1}, Stride: 1, Offset: len(r.prog.Scalars()), ID: len(r.prog.Tensors)}
	r.prog.Tensors = append(r.prog.Tensors, t)
	return t
}

// start compiles the recording and writes its inputs.
func (r *recording) start(t *testing.T, dev kernel.Device) kernel.Runner {
	t.Helper()
	store, err := dev.NewStore(r.prog.Layout, true)
	check(t, err)
	check(t, store.WriteWeights(r.weights))
	run, err := dev.Compile(r.prog, []kernel.Store{store})
	if err != nil {
		r.absent(t, err)
		t.Fatalf("%s: %v", r.what, err)
	}
	for _, in := range r.inputs {
		if err := run.WriteBatch(in.t, in.values); err != nil {
			t.Fatalf("%s: %v", r.what, err)
		}
	}
	return run
}

// run records, compiles and runs the trial, and reads every output.
func (c *trial) run(t *testing.T, dev kernel.Device, absolute bool) (*recording, outcome) {
	t.Helper()
	r := c.on(dev, absolute)
	return r, c.answer(t, dev, r)
}

// answer is what dev makes of a recording.
func (c *trial) answer(t *testing.T, dev kernel.Device, r *recording) outcome {
	t.Helper()
	run := r.start(t, dev)
	defer run.Close()
	control := c.control
	if control.Temperature == 0 {
		control.Temperature = 1
	}
	check(t, run.SetControl(control))
	check(t, run.SetState(c.state))
	check(t, run.Run())
	return r.read(t, run)
}

// absent skips where the device says that it is without an op that not every recipe needs: PPO,
// the source learner's, and ImplicitQ, by which agents learn from rewards.
func (r *recording) absent(t *testing.T, err error) {
	t.Helper()
	for _, op := range r.prog.PerShard {
		switch op.(type) {
		case *kernel.PPO, *kernel.ImplicitQ:
			if strings.HasSuffix(err.Error(), "no op "+op.Kind()) {
				t.Skip(err)
			}
		}
	}
}

func (r *recording) read(t *testing.T, run kernel.Runner) outcome {
	t.Helper()
	got := outcome{map[string][]float64{}, map[string][]int32{}}
	for _, o := range r.outputs {
		if o.t.Type == kernel.I32 {
			values := make([]int32, r.len(o.t))
			check(t, run.ReadBatch(o.t, values))
			got.ints[o.t.Name] = values
			continue
		}
		got.floats[o.t.Name] = readBatch(t, run, o.t, r.len(o.t))
	}
	if len(r.grads) > 0 {
		flat := make([]float32, r.prog.Layout.Len)
		check(t, run.ReadGrad(flat))
		for _, g := range r.grads {
			got.floats[g.t.Name] = widen(flat[g.t.Offset:][:g.t.Len()])
		}
	}
	return got
}

func readBatch(t *testing.T, run kernel.Runner, tensor *kernel.Tensor, n int) []float64 {
	t.Helper()
	values := make([]float32, n)
	check(t, run.ReadBatch(tensor, values))
	return widen(values)
}

func widen(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// try runs the trial on dev and on the reference and compares all outputs.
func (c trial) try(t *testing.T, dev kernel.Device) {
	t.Helper()
	if c.batch == 0 {
		c.batch = batchOf(dev, c.nodes, max(1, c.group))
	}
	r, got := c.run(t, dev, false)
	_, want := c.run(t, referenceFor(dev), false)
	var size outcome
	if c.linear {
		_, size = c.run(t, referenceFor(dev), true)
	}
	unit := unitOf(dev)
	if d, ok := dev.(rounded); ok && d.nearest {
		unit = 0
	}
	c.compare(t, r, got, want, size, unit)
}

// compare holds every output of r to its bound, on a device whose products round their operands to
// unit.
func (c *trial) compare(t *testing.T, r *recording, got, want, size outcome, unit float64) {
	t.Helper()
	for _, o := range append(r.outputs, r.grads...) {
		name := o.t.Name
		if o.t.Type == kernel.I32 {
			compareInts(t, c.what+" "+name, got.ints[name], want.ints[name])
			continue
		}
		if !c.rounds {
			unit = 0
		}
		s := largest(want.floats[name]) * max(1, c.amplify)
		compare(t, c.what+" "+name, got.floats[name], want.floats[name], func(i int) float64 {
			if c.linear {
				s := size.floats[name][i] * max(1, c.amplify)
				return bound(o.k, s) + 3*unit*s
			}
			return bound(o.k, s) + 8*unit*s
		})
	}
}

func compareInts(t *testing.T, what string, got, want []int32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s[%d] = %d, want %d", what, i, got[i], want[i])
			return
		}
	}
}
