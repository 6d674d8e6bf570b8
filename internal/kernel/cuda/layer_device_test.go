package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// agentRun compiles a training step of the in-context agent over made-up histories: rows of 164
// tokens and layers of the shape that is joined. Muon has blocks of that side; 0: none.
func agentRun(t testing.TB, dev kernel.Device, batch, layers, side int) (kernel.Runner, kernel.Store, *kernel.Layout) {
	t.Helper()
	return agentRows(t, dev, 164, batch, layers, side, 8, true, 1, 0.1)
}

// agentActions is how many actions agents choose from. With more than five their head is not
// joined.
var agentActions = 5

// agentRows is agentRun for rows of any length, compressed or one sequence each, any number of
// heads, and with the weights of queries and keys so many times as large.
func agentRows(t testing.TB, dev kernel.Device, tokens, batch, layers, side, heads int, compressed bool, steep, drop float32) (kernel.Runner, kernel.Store, *kernel.Layout) {
	t.Helper()
	const streams, steps = 8, 2000
	m, err := model.NewAD(model.ADConfig{Width: 128, Heads: heads, Layers: layers, Feed: 512, Positions: 2 * tokens, Observed: model.Sizes(9, 9),
		Actions: agentActions, Rewards: 2, Dropout: 0.1, AttentionDropout: drop, DropoutKey: 7})
	must(t, err)
	p := plan.New("agent", dev, batch, tokens, m.Layout())
	spec := model.Transitions(kernel.RegionSpec{Streams: streams, Steps: steps, Horizon: 20, Tokens: tokens, Compressed: compressed,
		Shortest: 20, Longest: 80, Ahead: 2, Seed: 3, Purpose: rng.Regions}, 2)
	in := model.Sequences{Index: p.ShardInts("index", batch, tokens, model.TokenFields(2)), Labels: p.ShardInts("labels", batch,
		tokens, 2), First: p.ShardInts("first", batch, tokens)}
	whole := p.Whole("history", streams*steps)
	p.Append(&kernel.Regions{Index: in.Index, Labels: in.Labels, First: in.First, Records: whole, RegionSpec: spec})
	sums := p.CrossEntropy("loss", m.Encode(p, in, true), in.Labels, m.Columns(), 0.1, true)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.01, MaxNorm: 1, Side: side}, 1)
	p.TallyHeads(sums, m.Heads()...)
	store, err := dev.NewStore(m.Layout(), true)
	must(t, err)
	weights := model.Initial(m.Layout(), 5)
	for _, w := range m.Layout().Params {
		if strings.Contains(w.Name, "qkv") {
			for i := range weights[w.Offset:][:w.Len()*2/3] {
				weights[w.Offset+i] *= steep
			}
		}
	}
	must(t, store.WriteWeights(weights))
	run, err := p.Compile(dev, store)
	must(t, err)
	must(t, run.SetControl(kernel.Control{LearningRate: 3e-4, Temperature: 1}))
	random, history := rand.New(rand.NewPCG(9, 9)), make([]int32, streams*steps)
	for i := range history {
		history[i] = int32(random.IntN(9) | random.IntN(9)<<8 | random.IntN(5)<<16 | random.IntN(2)<<24)
	}
	must(t, run.WriteBatch(whole, history))
	return run, store, m.Layout()
}

// TestAgentTwiceIsBitEqual trains the in-context agent twice from the same state and compares every
// weight.
func TestAgentTwiceIsBitEqual(t *testing.T) {
	train := func() []float32 {
		dev := open(t, cuda.BF16)
		defer dev.Close()
		run, store, layout := agentRun(t, dev, 37, 3, 0)
		defer run.Close()
		for range 10 {
			must(t, run.Run())
		}
		weights := make([]float32, layout.Len)
		must(t, store.ReadWeights(weights))
		return weights
	}
	if a, b := train(), train(); !slices.Equal(a, b) {
		t.Error("weights differ between two runs of ten steps")
	}
}

// BenchmarkAgentStep times the in-context agent's step at its full size, 1,024 rows and 6 layers,
// and its ops by kind: go test ./internal/kernel/cuda -bench AgentStep -benchtime 1x
func BenchmarkAgentStep(b *testing.B) {
	dev, err := cuda.Open(cuda.Options{Precision: cuda.BF16})
	if err != nil {
		b.Skip("needs a GPU: ", err)
	}
	defer dev.Close()
	run, _, _ := agentRun(b, dev, 1024, 6, 0)
	defer run.Close()
	_, err = run.(kernel.Profiler).Profile(10) // warm
	must(b, err)
	profile, err := run.(kernel.Profiler).Profile(50)
	must(b, err)
	b.ReportMetric(profile.Plain.Seconds()*1e3, "ms/step")
	ops := slices.Concat(profile.Program.PerShard, profile.Program.Once)
	type total struct {
		ms, gb float64
		count  int
	}
	by := map[string]*total{}
	for _, s := range profile.Spans {
		if s.Op < 0 {
			continue
		}
		op := ops[s.Op]
		name := op.Kind()
		op.Args(func(t *kernel.Tensor, a kernel.Access) { // products and their gradients by size
			if t.Space == kernel.Grad && len(t.Shape) == 2 {
				name = fmt.Sprintf("%s %v", op.Kind(), t.Shape)
			}
		})
		if by[name] == nil {
			by[name] = &total{}
		}
		by[name].ms += (s.End - s.Start).Seconds() * 1e3
		by[name].gb += float64(op.Cost().Bytes-kernel.HalvedBytes(op)) / 1e9
		by[name].count++
	}
	var names []string
	for name := range by {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return by[names[i]].ms > by[names[j]].ms })
	table := "\n"
	for _, name := range names {
		table += fmt.Sprintf("%-24s %2d ops  %7.3f ms  %6.2f GB  %5.2f TB/s\n", name, by[name].count, by[name].ms, by[name].gb,
			by[name].gb/by[name].ms)
	}
	fmt.Print(table)
}
