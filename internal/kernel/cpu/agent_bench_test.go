//go:build unix

package cpu_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/model"
	"haul/internal/plan"
)

// spent is the processor time of the process in seconds: on shared cores it says more than the
// clock.
func spent() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// raced are the sizes of BenchmarkAgent, ad_dr.yaml's where no flag says otherwise.
var raced = struct {
	tokens, batch, width, heads, layers *int
	attention                           *float64
	precision                           *string
}{
	flag.Int("agent.tokens", 80, "tokens of a row"),
	flag.Int("agent.batch", 512, "rows of a step"),
	flag.Int("agent.width", adDR.Width, "the network's width; the feed-forward layer has four times that"),
	flag.Int("agent.heads", adDR.Heads, "heads of attention"),
	flag.Int("agent.layers", adDR.Layers, "layers"),
	flag.Float64("agent.attention_dropout", 0.1, "rate of dropout of attention's probabilities"),
	flag.String("agent.precision", "fp32", "fp32 or bf16"),
}

// BenchmarkAgent is the whole step: 512 rows of 80 tokens or what flags say, shards as they are in
// use.
func BenchmarkAgent(b *testing.B) { benchmarkAgent(b, cpu.Options{Precision: *raced.precision}) }

// BenchmarkAgentShards compares sizes of a shard.
func BenchmarkAgentShards(b *testing.B) {
	for _, rows := range []int{80, 160, 240, 320} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) { benchmarkAgent(b, cpu.Options{ShardRows: rows}) })
	}
}

func benchmarkAgent(b *testing.B, o cpu.Options) {
	cfg := adDR
	cfg.Width, cfg.Heads, cfg.Layers, cfg.Feed = *raced.width, *raced.heads, *raced.layers, 4**raced.width
	cfg.Positions, cfg.AttentionDropout = *raced.tokens, float32(*raced.attention)
	run, _ := agentRun(b, open(b, o), cfg, *raced.batch, *raced.tokens, 1)
	check(b, run.Run())
	var took []float64
	start := spent()
	for b.Loop() {
		began := time.Now()
		check(b, run.Run())
		took = append(took, time.Since(began).Seconds()*1e3)
	}
	b.ReportMetric((spent()-start)*1e3/float64(b.N), "cpu-ms/op")
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms/median")
	b.ReportMetric(took[len(took)/10], "ms/p10")
	if os.Getenv("PROFILE") != "" {
		profile(b, run)
	}
}

func profile(b *testing.B, run kernel.Runner) {
	p, err := run.(interface {
		Profile(int) (*kernel.Profile, error)
	}).Profile(1)
	check(b, err)
	sum := map[string]float64{}
	ops := append(slices.Clone(p.Program.PerShard), p.Program.Once...)
	for _, s := range p.Spans {
		name := "idle"
		if s.Op >= 0 && s.Op < len(ops) {
			name = ops[s.Op].Kind()
			if l, ok := ops[s.Op].(*kernel.Linear); ok && l.Pre != nil {
				name += ".gelu"
			} else if ok && l.Drop.Rate > 0 {
				name += ".drop"
			}
			if l, ok := ops[s.Op].(*kernel.LinearGradX); ok && l.Pre != nil {
				name += ".gelu"
			}
		}
		sum[name] += (s.End - s.Start).Seconds() * 1e3
	}
	for k, v := range sum {
		fmt.Printf("%-20s %7.2f ms\n", k, v)
	}
}

// BenchmarkLearner is one step of a source learner on one core: a minibatch of 40.
func BenchmarkLearner(b *testing.B) {
	dev := open(b, cpu.Options{Workers: 1})
	m := model.NewMLP(2, 64, 5)
	p := plan.New("learner", dev, 40, 1, m.Layout())
	x, sample := p.Rows("x", p.B(), 2), p.Rows("sample", p.B(), 4)
	p.PPO(m.Record(p, x), sample, kernel.PPO{Clip: 0.2, ValueCoef: 0.5, EntropyCoef: 0.01})
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-5, MaxNorm: 0.5}, 1)
	run, _ := compiled(b, p, dev, m.Layout())
	xs, samples := make([]float32, 80), make([]float32, 160)
	for i := range xs {
		xs[i] = float32(i%9) / 9
	}
	for i := 0; i < len(samples); i += 4 {
		samples[i], samples[i+1], samples[i+2], samples[i+3] = float32(i/4%5), -1.6, float32(i%3)-1, 0.5
	}
	b.ReportAllocs()
	var xa, sa any = xs, samples // boxed once
	start := spent()
	for b.Loop() {
		check(b, run.WriteBatch(x, xa))
		check(b, run.WriteBatch(sample, sa))
		check(b, run.Run())
	}
	b.ReportMetric((spent()-start)*1e6/float64(b.N), "cpu-µs/op")
	if os.Getenv("PROFILE") != "" {
		profile(b, run)
	}
}

// BenchmarkDecode is one token of each of 1,024 agents, 80 tokens behind it.
func BenchmarkDecode(b *testing.B) {
	const agents, tokens = 1024, 80
	dev := open(b, cpu.Options{})
	m, err := model.NewAD(adDR)
	check(b, err)
	p := plan.New("decode", dev, agents, 1, m.Layout())
	index, at := p.RowInts("index", p.B(), 1, model.TokenFields(2)), p.RowInts("at", p.B(), 1)
	m.Step(p, index, at, nil, tokens)
	run, _ := compiled(b, p, dev, m.Layout())
	where := make([]int32, agents)
	for i := range where {
		where[i] = tokens - 1
	}
	check(b, run.WriteBatch(at, where))
	start := spent()
	for b.Loop() {
		check(b, run.Run())
	}
	b.ReportMetric((spent()-start)*1e3/float64(b.N), "cpu-ms/op")
	if os.Getenv("PROFILE") != "" {
		profile(b, run)
	}
}
