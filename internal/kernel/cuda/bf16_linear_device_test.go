package cuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
	"haul/internal/plan"
)

// bf16Case is one product between tensors that may be compact: M = rows·nodes.
type bf16Case struct {
	name              string
	rows, nodes, k, n int // of the linear layer
	record            func(p *bf16Plan)
}

// bf16Plan records a product. Inputs come from the batch, and results go there, through copies that
// change the type.
type bf16Plan struct {
	*plan.Plan
	bf16Case
	layout  *kernel.Layout
	inputs  []*kernel.Tensor
	results []*kernel.Tensor
}

func (p *bf16Plan) copyOf(to, from *kernel.Tensor) {
	p.Append(&kernel.Dropout{Y: to, X: from, Drop: kernel.Drop{Nodes: p.nodes}})
}

func (p *bf16Plan) in(name string, columns int, compact bool) *kernel.Tensor {
	given := p.Rows(name, p.B(), p.nodes, columns)
	p.inputs = append(p.inputs, given)
	t := p.Shard(name+".shard", p.B(), p.nodes, columns)
	t.Compact = compact
	p.copyOf(t, given)
	return t
}

func (p *bf16Plan) out(name string, columns int, compact bool) *kernel.Tensor {
	t := p.Shard(name+".shard", p.B(), p.nodes, columns)
	t.Compact = compact
	return t
}

func (p *bf16Plan) show(t *kernel.Tensor) {
	r := p.Rows(t.Name+".read", t.Shape...)
	p.results = append(p.results, r)
	p.copyOf(r, t)
}

// do records an op and shows what it writes, gradients excepted.
func (p *bf16Plan) do(op kernel.Op) {
	p.Append(op)
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		if a != kernel.Read && t.Space == kernel.Shard {
			p.show(t)
		}
	})
}

// bf16Cases are the products of the in-context agent at each of its kernels, more rows than one
// round of the card takes, and odd sizes.
func bf16Cases() []bf16Case {
	var out []bf16Case
	drop := func(p *bf16Plan) kernel.Drop { return kernel.Drop{Rate: 0.1, Site: 5, Nodes: p.nodes, Seed: 77} }
	for _, s := range [][4]int{{300, 164, 128, 384}, {300, 164, 128, 128}, {300, 164, 128, 512}, {300, 164, 512, 128}, {300, 164, 128, 8}, {7, 80, 64, 192},
		{7, 80, 256, 64}, {5, 37, 40, 72}, {5, 37, 136, 200}, {3, 11, 128, 9}, {3, 11, 12, 20}} {
		name := func(what string) string { return fmt.Sprintf("%s/M=%d,K=%d,N=%d", what, s[0]*s[1], s[2], s[3]) }
		add := func(what string, record func(*bf16Plan)) {
			out = append(out, bf16Case{name(what), s[0], s[1], s[2], s[3], record})
		}
		add("linear compact", func(p *bf16Plan) {
			p.do(&kernel.Linear{Y: p.out("y", p.n, true), X: p.in("x", p.k, true), W: p.Weight(0, 0)})
		})
		add("linear dropped", func(p *bf16Plan) {
			p.do(&kernel.Linear{Y: p.out("y", p.n, false), X: p.in("x", p.k, true), W: p.Weight(0, 0), Bias: p.Weight(0, 1), Residual: p.in("r", p.n, false), Drop: drop(p)})
		})
		add("linear GELU", func(p *bf16Plan) {
			p.do(&kernel.Linear{Y: p.out("y", p.n, true), Pre: p.out("pre", p.n, true), X: p.in("x", p.k, true), W: p.Weight(0, 0), Bias: p.Weight(0, 1)})
		})
		add("linear.dx", func(p *bf16Plan) {
			p.do(&kernel.LinearGradX{DX: p.out("dx", p.k, true), DY: p.in("dy", p.n, p.n != 8), W: p.Weight(0, 0)})
		})
		add("linear.dx GELU", func(p *bf16Plan) {
			p.do(&kernel.LinearGradX{DX: p.out("dx", p.k, true), DY: p.in("dy", p.n, true), W: p.Weight(0, 0), Pre: p.in("pre", p.k, true)})
		})
		add("linear.dw", func(p *bf16Plan) {
			dw, db := *p.Weight(0, 0), *p.Weight(0, 1)
			dw.Space, db.Space = kernel.Grad, kernel.Grad
			p.do(&kernel.LinearGradW{DW: &dw, DBias: &db, DY: p.in("dy", p.n, p.n != 8), X: p.in("x", p.k, true)})
			p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, 1)
		})
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// compile records the case for dev and fills weights and inputs with what depends on nothing but
// their order.
func (c bf16Case) compile(t testing.TB, dev kernel.Device) (*bf16Plan, kernel.Runner) {
	t.Helper()
	p := &bf16Plan{bf16Case: c, layout: &kernel.Layout{}}
	p.layout.Add("w", kernel.InitUniform, c.k, c.n, c.k)
	p.layout.Add("bias", kernel.InitUniform, c.k, c.n)
	p.Plan = plan.New(c.name, dev, c.rows, c.nodes, p.layout)
	c.record(p)
	random := rand.New(rand.NewPCG(1, 2))
	normals := func(n int, scale float64) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(random.NormFloat64() * scale)
		}
		return out
	}
	store, err := dev.NewStore(p.layout, true)
	must(t, err)
	must(t, store.WriteWeights(normals(p.layout.Len, 1/math.Sqrt(float64(c.k)))))
	run, err := p.Compile(dev, store)
	must(t, err)
	for _, in := range p.inputs {
		must(t, run.WriteBatch(in, normals(in.Len(), 1)))
	}
	return p, run
}

// run returns the results of one step, or the weights' gradient where there are none.
func (c bf16Case) run(t *testing.T, precision cuda.Precision) [][]float32 {
	t.Helper()
	dev := open(t, precision)
	defer dev.Close()
	p, run := c.compile(t, dev)
	defer run.Close()
	must(t, run.Run())
	var out [][]float32
	for _, r := range p.results {
		values := make([]float32, r.Len())
		must(t, run.ReadBatch(r, values))
		out = append(out, values)
	}
	if len(out) == 0 {
		flat := make([]float32, p.layout.Len)
		must(t, run.ReadGrad(flat))
		out = append(out, flat)
	}
	return out
}

// compare holds the results in a precision against those of the same card in fp32: an element may
// be off by ofSize of the root mean square of its tensor and ofOwn of its own size.
func (c bf16Case) compare(t *testing.T, precision cuda.Precision, ofSize, ofOwn float64) {
	t.Helper()
	got, want := c.run(t, precision), c.run(t, cuda.FP32)
	for i := range want {
		var square float64
		for _, v := range want[i] {
			square += float64(v) * float64(v)
		}
		size := math.Sqrt(square / float64(len(want[i])))
		for j, v := range want[i] {
			if err := math.Abs(float64(got[i][j] - v)); !(err <= ofSize*size+ofOwn*math.Abs(float64(v))) {
				t.Fatalf("result %d, element %d: %g, in fp32 %g", i, j, got[i][j], v)
			}
		}
	}
}

// TestBF16Products compares products over compact tensors with those of the same card in fp32.
// Inputs are standard normals and weights keep their size, so each element is of order one, or of
// the root of M for a weight's gradient; rounding is 2⁻⁹ of that a few times over.
func TestBF16Products(t *testing.T) {
	open(t, cuda.BF16).Close()
	for _, c := range bf16Cases() {
		t.Run(c.name, func(t *testing.T) { c.compare(t, cuda.BF16, 0.03, 0.01) })
	}
}

// BenchmarkBF16Products times the in-context agent's products, 1,024 rows of 164 tokens, one after
// the other: go test ./internal/kernel/cuda -bench BF16Products -benchtime 1x
func BenchmarkBF16Products(b *testing.B) {
	for _, c := range bf16Cases() {
		if c.nodes != 164 {
			continue
		}
		c.rows = 1024
		b.Run(c.name, func(b *testing.B) {
			dev, err := cuda.Open(cuda.Options{Precision: cuda.BF16})
			if err != nil {
				b.Skip("needs a GPU: ", err)
			}
			defer dev.Close()
			_, run := c.compile(b, dev)
			defer run.Close()
			best := math.Inf(1)
			for range 20 {
				profile, err := run.(kernel.Profiler).Profile(1)
				must(b, err)
				for _, s := range profile.Spans {
					if s.Op < 0 || s.Op >= len(profile.Program.PerShard) {
						continue
					}
					switch profile.Program.PerShard[s.Op].(type) {
					case *kernel.Linear, *kernel.LinearGradX, *kernel.LinearGradW:
						best = min(best, (s.End-s.Start).Seconds()*1e6)
					}
				}
			}
			b.ReportMetric(best, "µs/op")
		})
	}
}
