package kerneltest

import (
	"math"
	"testing"

	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/vrp"
)

// everyKind is a mix of all variants: kernel.Attributes whose Mixed goes with Backhaul.
func everyKind() (mix uint64) {
	for a := kernel.Attributes(0); a < kernel.Windowed<<1; a++ {
		if a&kernel.Mixed == 0 || a&kernel.Backhaul != 0 {
			mix |= 1 << a
		}
	}
	return mix
}

// everyDepots is everyKind with one depot and with several.
func everyDepots() uint64 { return everyKind() | everyKind()<<kernel.Several }

// depotFleets are of MDVRP: one kind alone, and all that there are, of one depot and of several.
func depotFleets() []fleet {
	base := fleet{shape: shape{13, 2, 4}, starts: 3, capacity: 25, temperature: 1, ruled: ruled{depots: true}}
	var out []fleet
	for i, a := range []kernel.Attributes{0, kernel.Open, kernel.Backhaul, kernel.Backhaul | kernel.Mixed, kernel.Limited, kernel.Windowed} {
		f := base
		f.mix = 1 << (a | kernel.Several)
		if i%2 == 1 {
			f = f.view()
		}
		out = append(out, f)
	}
	all := ruled{mix: everyDepots(), depots: true}
	least := fleet{shape: shape{4, 1, 4}, starts: 1, capacity: 9, temperature: 1, ruled: all}
	small := fleet{shape: shape{23, 2, 8}, starts: 20, forced: true, capacity: 30, temperature: 1.5, ruled: all}
	paired := fleet{shape: shape{67, 4, 8}, starts: 5, forced: true, capacity: 40, temperature: 1, ruled: all, pairs: true, near: 0.3}
	return append(out, least, small, paired, paired.view())
}

// largeDepots are fleets of MDVRP of a model's own width.
func largeDepots() []fleet {
	all := ruled{mix: everyDepots(), depots: true}
	paired := fleet{shape: shape{40, 8, 16}, starts: 9, forced: true, capacity: 40, temperature: 1.5, ruled: all, pairs: true, near: 0.3}
	far := fleet{shape: shape{103, 4, 32}, starts: 6, capacity: 50, temperature: 1, ruled: all, pairs: true}
	alone := fleet{shape: shape{23, 4, 32}, starts: 1, capacity: 30, temperature: 1, ruled: all}
	// without biases no kernel holds all nodes, and past 128 none does
	plain := fleet{shape: shape{30, 8, 16}, starts: 9, forced: true, capacity: 40, temperature: 1, ruled: all}
	many := fleet{shape: shape{133, 4, 32}, starts: 17, forced: true, capacity: 50, temperature: 1, ruled: all, pairs: true}
	return append([]fleet{paired, paired.view(), far.view(), alone, plain, many}, eachSize(all, 2)...)
}

// eachSize has a fleet for each size of the kernels that hold all nodes of an instance.
func eachSize(by ruled, further int) (out []fleet) {
	for i, s := range []shape{{16, 4, 32}, {32, 8, 16}, {56, 4, 32}, {101 + further, 4, 32}, {104, 8, 16}, {128, 4, 32}} {
		out = append(out, fleet{shape: s, starts: min(s.nodes-1-further, 33), forced: i != 3, viewed: i == 3, capacity: 40, temperature: 1, ruled: by, pairs: true, near: 0.2})
	}
	return out
}

// variedFleets are of VRP: one attribute alone, and all that there are.
func variedFleets() []fleet {
	base := fleet{shape: shape{12, 2, 4}, starts: 3, capacity: 25, temperature: 1}
	var out []fleet
	for i, a := range []kernel.Attributes{0, kernel.Open, kernel.Backhaul, kernel.Backhaul | kernel.Mixed, kernel.Limited, kernel.Windowed} {
		f := base
		f.mix = 1 << a
		if i%2 == 1 {
			f = f.view()
		}
		out = append(out, f)
	}
	small := fleet{shape: shape{21, 2, 8}, starts: 20, forced: true, capacity: 30, temperature: 1.5, ruled: ruled{mix: everyKind()}}
	paired := fleet{shape: shape{40, 4, 8}, starts: 5, forced: true, capacity: 40, temperature: 1, ruled: ruled{mix: everyKind()}, pairs: true, near: 0.3}
	return append(out, small, paired, paired.view())
}

// places are inputs of a coordinate: normal, or uniform for VRP, whose windows suit the unit
// square.
func (r *recording) places(name string, f fleet) *kernel.Tensor {
	if f.mix == 0 {
		return r.in(name, f.nodes)
	}
	values := make([]float32, r.prog.Batch*f.nodes)
	for i := range values {
		values[i] = rng.Float(rng.At(uint64(len(name)+int(name[0])), uint64(i), 0, rng.Instances)[0])
	}
	return r.given(name, values, f.nodes)
}

// varied is what the words of VRP's nodes say, for the referee; demands of pickups become 0 in b.
func varied(words []int32, wide, nodes int, b *vrp.Batch) *vrp.Varied {
	at := func(j, k int) float32 { return math.Float32frombits(uint32(words[j*wide+k])) }
	v := &vrp.Varied{Pickup: make([]int32, len(b.X))}
	for j := range b.X {
		if j%nodes == 0 {
			v.Attributes, v.Limit = append(v.Attributes, vrp.Attributes(words[j*wide+7])), append(v.Limit, at(j, 3))
		}
		if b.Demand[j] < 0 {
			v.Pickup[j], b.Demand[j] = -b.Demand[j], 0
		}
		v.Early, v.Late, v.Service = append(v.Early, at(j, 4)), append(v.Late, at(j, 5)), append(v.Service, at(j, 6))
	}
	return v
}

// ownOf is what instance i of a mix has, in the columns' words; pickups become demands below 0.
func ownOf(words []int32, wide int, b *vrp.Batch, i int) kernel.Own {
	v, nodes := b.Varied, b.Nodes()
	own := kernel.Own{Attributes: kernel.Attributes(v.Attributes[i]), Limit: v.Limit[i], End: v.Late[i*nodes]}
	for j := i * nodes; j < (i+1)*nodes; j++ {
		if v.Pickup[j] > 0 {
			words[j*wide] = -v.Pickup[j]
		}
		own.Windows = append(own.Windows, kernel.Window{Early: v.Early[j], Late: v.Late[j], Service: v.Service[j]})
	}
	if own.Attributes&kernel.Several != 0 {
		own.Depots = 1 + b.Further
	}
	return own
}

// reachOf is where the limits of length end that a rule set draws by itself.
func reachOf(set kernel.RuleSet) float32 {
	if set == kernel.VRP || set == kernel.MDVRP {
		return vrp.MixLongest
	}
	return 0
}

// largeVaried are fleets of VRP of a model's own width: one start and several, forced and viewed.
func largeVaried() []fleet {
	all := ruled{mix: everyKind()}
	paired := fleet{shape: shape{40, 8, 16}, starts: 9, forced: true, capacity: 40, temperature: 1.5, ruled: all, pairs: true, near: 0.3}
	wide := fleet{shape: shape{51, 4, 32}, starts: 20, forced: true, capacity: 40, temperature: 1, ruled: all}
	far := fleet{shape: shape{101, 4, 32}, starts: 6, capacity: 50, temperature: 1, ruled: all, pairs: true}
	alone := fleet{shape: shape{21, 4, 32}, starts: 1, capacity: 30, temperature: 1, ruled: all}
	return append([]fleet{paired, paired.view(), wide, far.view(), alone}, eachSize(all, 0)...)
}

// RunVaried runs what is VRP's of the suite and of RunLarge.
func RunVaried(t *testing.T, unit float64, open func(t *testing.T) kernel.Device) {
	run(t, []part{{"generate", testGenerate}}, open)
	run(t, []part{
		{"rollout", func(t *testing.T, dev kernel.Device) {
			testStartsRollout(t, dev, largeVaried())
		}},
		{"rollout.grad", func(t *testing.T, dev kernel.Device) { testStartsGrad(t, dev, largeVaried()) }},
	}, func(t *testing.T) kernel.Device { return rounded{Device: open(t), unit: unit} })
}

// RunDepots runs routes from several depots, and their gradients; with -short of the smallest fleet
// of a model's own width alone, which a sanitizer is done with soon.
func RunDepots(t *testing.T, unit float64, open func(t *testing.T) kernel.Device) {
	fleets := append(depotFleets(), largeDepots()...)
	if testing.Short() {
		fleets = eachSize(ruled{mix: everyDepots(), depots: true}, 2)[:1]
	}
	run(t, []part{
		{"rollout", func(t *testing.T, dev kernel.Device) { testStartsRollout(t, dev, fleets) }},
		{"rollout.grad", func(t *testing.T, dev kernel.Device) { testStartsGrad(t, dev, fleets) }},
	}, func(t *testing.T) kernel.Device { return rounded{Device: open(t), unit: unit} })
}
