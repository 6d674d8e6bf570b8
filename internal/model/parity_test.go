package model_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/host"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/safetensors"
)

// fixture is a file of scripts/parity.py or scripts/ad_parity.py: the same model in PyTorch,
// computed in float64 from these float32 inputs.
type fixture struct {
	*safetensors.File
	t testing.TB
}

func loadFixture(t testing.TB, name string) fixture {
	t.Helper()
	f, err := safetensors.Load("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{f, t}
}

// weights returns the parameters before the first step whose names have the prefix, in the layout's
// order.
func (f fixture) weights(prefix string, l *kernel.Layout) []float32 {
	f.t.Helper()
	flat := make([]float32, l.Len)
	for _, q := range l.Params {
		if n := copy(flat[q.Offset:][:q.Len()], f.floats(prefix+q.Name)); n != q.Len() {
			f.t.Fatalf("%s%s: %d values, want %d", prefix, q.Name, n, q.Len())
		}
	}
	return flat
}

func (f fixture) floats(name string) []float32 {
	f.t.Helper()
	x, ok := f.Tensor(name)
	if !ok {
		f.t.Fatalf("the fixture has no %s", name)
	}
	out := make([]float32, len(x.Data)/4)
	if err := x.ReadFloat32s(out); err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f fixture) ints(name string) []int32 {
	f.t.Helper()
	var out []int32
	for _, v := range f.floats(name) {
		out = append(out, int32(v))
	}
	return out
}

func (f fixture) number(key string) float64 {
	f.t.Helper()
	v, err := strconv.ParseFloat(f.Metadata[key], 64)
	if err != nil {
		f.t.Fatalf("%s: %v", key, err)
	}
	return v
}

// The prefixes of the fixture's networks; the second network scores pairs of nodes.
const plain, paired = "weights.", "paired."

// parityCase is a case of scripts/parity.py.
type parityCase struct {
	name, weights string
	forced        bool
	viewed        bool
	near          float64
}

// features returns the features of instances as the host writes them.
func features(in model.Instances, n int, x, y []float32, nodes []int32) []float32 {
	wide, columns := in.Feature.Cols(), len(in.Set.Columns())
	out := make([]float32, len(x)*wide)
	for i := 0; i < len(x); i += n {
		f := reference.Matrix[float32]{Data: out[i*wide:], Rows: n, Cols: wide, Stride: wide}
		reference.Features(f, x[i:][:n], y[i:][:n], nodes[i*columns:][:n*columns], in.Set, float32(in.Capacity))
	}
	return out
}

// replayed is a step on the fixture's actions and advantages.
type replayed struct {
	layout   *kernel.Layout
	run      kernel.Runner
	routes   *plan.Routes
	rows     int
	gradient []float32
}

// rules returns the rules of the fixture's instances.
func (f fixture) rules() kernel.RuleSet {
	if f.Metadata["limits"] != "" {
		return kernel.CVRPL
	}
	return kernel.CVRP
}

// nodes returns the columns that the rules read, for all instances of n nodes.
func (f fixture) nodes(n int) []int32 {
	demand, wide := f.ints("demand"), len(f.rules().Columns())
	out := make([]int32, wide*len(demand))
	for j, d := range demand {
		out[wide*j] = d
	}
	if f.rules() == kernel.CVRPL {
		x, y := f.floats("x"), f.floats("y")
		for i, limit := range f.floats("limit") {
			host.Complete(f.rules(), out[i*n*wide:][:n*wide], x[i*n:][:n], y[i*n:][:n], kernel.Own{Limit: limit})
		}
	}
	return out
}

// network returns the network of a case: a graph attention network if the fixture has edge
// features.
func (f fixture) network(c parityCase) (*model.Network, error) {
	width, heads, layers := int(f.number("width")), int(f.number("heads")), int(f.number("layers"))
	if f.Metadata["edge"] == "" {
		return model.NewGT(model.GTConfig{Width: width, Heads: heads, Layers: layers, FeedMul: 2, Near: float32(c.near), Pairs: c.weights == paired, Rules: f.rules()})
	}
	return model.NewGAT(model.GATConfig{Width: width, Heads: heads, Layers: layers, Edge: int(f.number("edge")), FeedMul: 2, Leak: float32(f.number("leak")),
		Near: float32(c.near), Pairs: c.weights == paired})
}

func replay(t *testing.T, dev kernel.Device, f fixture, c parityCase) *replayed {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	batch, nodes, capacity := int(f.number("batch")), int(f.number("customers"))+1, int32(f.number("capacity"))
	m, err := f.network(c)
	check(err)
	adv, actions := f.floats(c.name+".advantage"), f.ints(c.name+".actions")
	r := &replayed{layout: m.Layout(), rows: len(adv), gradient: make([]float32, m.Layout().Len)}
	starts := len(adv) / batch

	p := plan.New("parity", dev, batch, nodes, m.Layout())
	b := p.B()
	in := p.Given(kernel.Rules{Set: f.rules(), Capacity: capacity}, nodes)
	given := p.RowInts("actions", b, starts, len(actions)/len(adv))
	r.routes = p.Rollout("policy", m.Encode(p, 0, in, true), plan.RolloutSpec{Choice: kernel.Replay, Starts: starts, Forced: c.forced, Viewed: c.viewed, Actions: given}, rng.Actions)
	weight := p.Rows("advantage", b, starts)
	p.PolicyGradient(r.routes, weight)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, MaxNorm: 1}, 1)

	store, err := dev.NewStore(m.Layout(), true)
	check(err)
	check(store.WriteWeights(f.weights(c.weights, m.Layout())))
	r.run, err = p.Compile(dev, store)
	check(err)
	check(r.run.SetControl(kernel.Control{Temperature: float32(f.number("temperature")), Coefficients: map[string]float32{plan.EntropyBonus: float32(f.number("entropy"))}}))
	check(r.run.WriteBatch(in.PosX, f.floats("x")))
	check(r.run.WriteBatch(in.PosY, f.floats("y")))
	check(r.run.WriteBatch(in.Nodes, f.nodes(nodes)))
	check(r.run.WriteBatch(in.Feature, features(in, nodes, f.floats("x"), f.floats("y"), f.nodes(nodes))))
	check(r.run.WriteBatch(given, actions))
	check(r.run.WriteBatch(weight, adv))
	check(r.run.Run())
	check(r.run.ReadGrad(r.gradient))
	return r
}

// apart returns the largest difference of two tensors as a fraction of want's largest value.
func apart(got, want []float32) float64 {
	var diff, size float64
	for i, w := range want {
		diff = max(diff, math.Abs(float64(got[i])-float64(w)))
		size = max(size, math.Abs(float64(w)))
	}
	if math.IsNaN(diff) || len(got) != len(want) {
		return math.Inf(1)
	}
	return diff / size
}

// Tolerances, as fractions of a tensor's largest value. In float64 only the fixture's own rounding
// remains, 6e-8. In float32 a result passes two layers with sums of up to 64 terms: a few tens of
// roundings of 6e-8, which add up like their square root. A gradient starts from δ - p at each
// decision, where p = e^z/Σ has an error of four units, 2.4e-7. For a likely action only 1 - p
// remains: the tolerance allows for decisions down to 1 - p = 0.005. The observed errors of the
// decoder's weights, 1.2e-5, and after all layers, 1.2e-5 at the embedding, are alike, so the
// layers add little.
const (
	toleranceExact    = 2e-7
	toleranceResult   = 2e-6
	toleranceGradient = 5e-5
)

// parityDevices returns the reference, and the CPU with every instruction set and several shard
// sizes.
func parityDevices() map[string]func() (kernel.Device, error) {
	devices := map[string]func() (kernel.Device, error){
		exactDevice: func() (kernel.Device, error) { return reference.New[float64](2), nil },
	}
	for _, set := range cpu.Sets() {
		// for GT's instances: shards of 2; of 4 with a last one of 2; a single one
		for _, rows := range []int{16, 32, 1000} {
			devices[fmt.Sprintf("%s, shards of %d rows", set, rows)] = func() (kernel.Device, error) {
				return cpu.Open(cpu.Options{Set: set, Workers: 2, ShardRows: rows})
			}
		}
	}
	return devices
}

const exactDevice = "reference float64"

// The whole model on replayed actions: all results and all gradients by name, on every instruction
// set.
func TestParityWithPyTorch(t *testing.T) {
	near := loadFixture(t, "parity.safetensors").number("near")
	for file, cases := range map[string][]parityCase{
		"parity.safetensors": {{"sampled", plain, false, false, 0}, {"starts", plain, true, false, 0}, {"near", plain, true, false, near},
			{"pairs", paired, true, false, 0}, {"pairs and near", paired, true, false, near},
			{"views, pairs and near", paired, false, true, near}, {"views", plain, false, true, 0}},
		"limits_parity.safetensors": {{"sampled", plain, false, false, 0}, {"pairs and near", paired, true, false, near}},
		"gat_parity.safetensors":    {{"sampled", plain, false, false, 0}, {"pairs and near", paired, true, false, near}},
	} {
		f := loadFixture(t, file)
		for name, open := range parityDevices() {
			t.Run(file+", "+name, func(t *testing.T) {
				dev, err := open()
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				result, gradient := toleranceResult, toleranceGradient
				if name == exactDevice {
					result, gradient = toleranceExact, toleranceExact
				}
				for _, c := range cases {
					compare(t, f, replay(t, dev, f, c), c, result, gradient)
				}
			})
		}
	}
}

// compare compares a step with the fixture.
func compare(t *testing.T, f fixture, r *replayed, c parityCase, result, gradient float64) {
	t.Helper()
	for part, tensor := range map[string]*kernel.Tensor{"logprob": r.routes.LogProb, "entropy": r.routes.Entropy, "length": r.routes.Length} {
		got := make([]float32, r.rows)
		if err := r.run.ReadBatch(tensor, got); err != nil {
			t.Fatal(err)
		}
		if d := apart(got, f.floats(c.name+"."+part)); !(d <= result) {
			t.Errorf("%s %s: apart by %.2g of the largest, %.2g allowed", c.name, part, d, result)
		}
	}
	for _, q := range r.layout.Params {
		if d := apart(r.gradient[q.Offset:][:q.Len()], f.floats(c.name+".grad."+q.Name)); !(d <= gradient) {
			t.Errorf("%s, gradient of %s: apart by %.2g of the largest, %.2g allowed", c.name, q.Name, d, gradient)
		}
	}
	if err := r.run.Close(); err != nil {
		t.Error(err)
	}
}
