package rule

import (
	"fmt"
	"slices"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// oversubscribed looks for a CPU job with more threads than cores. PyTorch divides an elementwise
// operator with more than some ten thousand elements over its threads and waits for all of them.
// With too few cores, the operator waits for the scheduler. The best run of an operator shows this
// without other disturbances: a fork and join takes 10 to 30 µs with a core per thread, and over
// 100 µs for 32 threads on two cores.
//
// Threshold: cheap operators on 16 to 128 thousand elements take at least 80 µs in the best of four
// runs, every kind of them, and twice what one core needs for the elements: 1 ns per element, half
// of that for additions, multiplications and copies.
//
// Threads that compete with each other for a core run in short slices, and the operator takes about
// as long each time: the lower quartile of its runs is 1.1 to 1.6 times the best. If other
// processes use the cores, a run takes a random number of their slices of several milliseconds: 15
// to 30 times the best, or the best itself contains one. Above 3 times, or above 1 ms, the machine
// is the cause and the finding a note.
//
// An operator may be slow for another reason: anomaly mode takes a traceback inside each operator
// of the forward. So a single quick kind of the backward's divided operators shows that a fork and
// join is quick.
//
// A trace without operators of that size is judged by operators with up to twice as many elements,
// with the 80 µs added to twice what one core needs.
const (
	forkElements = 16_000
	forkMost     = 131_072
	forkLarge    = 262_144
	forkNS       = 80_000
	forkRuns     = 4
	forkForms    = 2
	forkUsual    = 30_000
	forkShare    = 0.03
	forkElement  = 2         // ns
	forkSteady   = 3         // times the best
	forkTurn     = 1_000_000 // ns
)

var oversubscribed = Rule{
	ID:     "oversubscribed",
	remedy: "Give PyTorch as many threads as the process has cores: torch.set_num_threads(n) or OMP_NUM_THREADS, fewer per process where several share the machine, and look at the container's CPU limit.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		if !a.OnHost() || !a.Shapes {
			return nil
		}
		usual, most := "10 to 60", forkMost
		f := forksOf(a, 0, forkMost, 0)
		if len(f.best) < forkForms {
			usual, most = "less than half of that", forkLarge
			f = forksOf(a, forkMost, forkLarge, forkNS)
		}
		ms := a.Ms(f.ns)
		if len(f.best) < forkForms || f.alone || slices.Min(f.best) < forkNS || a.Share(ms) < forkShare || quickFork(a) {
			return nil
		}
		slices.Sort(f.best)
		slices.Sort(f.spread)
		c := &cost{ms: ms, places: f.places, evidence: []string{
			fmt.Sprintf("elementwise operators on %s to %s elements, which run on several threads, take %s µs even in their best run (the middle of %s): with a core per thread it is %s",
				phrase.Thousands(forkElements), phrase.Thousands(most), phrase.Figure(float64(f.best[len(f.best)/2])/1000), phrase.Count1(len(f.best), "kind"), usual),
			"a thread that has no core holds all others at the end of each operator",
		}}
		if times, best := f.spread[len(f.spread)/2], f.best[len(f.best)/2]; times > forkSteady || best > forkTurn {
			c.most = Note
			c.remedy = "Look at what else runs on these cores (top) and at the container's CPU limit before you change the program."
			c.evidence = append(c.evidence, fmt.Sprintf("a note: other processes hold the cores. Three of four runs take more than %s times as long as the best one; threads that lack cores only because of each other take about as long each time, and less than 1 ms", phrase.Figure(float64(times))))
		}
		return c
	},
}

// forks sums the operators of a range of sizes that are divided over threads.
type forks struct {
	best, spread []float32 // by kind: the best run, and the lower quartile divided by it
	alone        bool      // one core may take as long without threads
	ns           float64   // beyond their time with a core per thread
	places       []analysis.Place
}

// forksOf measures operators with more than least and at most most elements. Their best time must
// exceed the time of a single core by more.
func forksOf(a *analysis.Analysis, least, most, more float64) forks {
	type key struct{ name, form uint32 }
	runs := map[key][]float32{}
	var f forks
	a.EachOp(func(th *trace.Thread, _, _ int, o *trace.Op) {
		if n := forkedElements(a, o); n <= least || n > most {
			return
		}
		k := key{o.Name, o.Form}
		runs[k] = append(runs[k], o.Dur)
		usual := float64(forkUsual)
		if more > 0 {
			usual = oneCore(a, o.Name, o.Form) / 2
		}
		if o.Cause == 0 && float64(o.Dur) > usual {
			f.ns += float64(o.Dur) - usual
			f.places = append(f.places, analysis.Place{Span: trace.Span{Start: o.Start, End: o.End()}, Thread: th})
		}
	})
	for k, durs := range runs {
		if len(durs) < forkRuns {
			continue
		}
		slices.Sort(durs)
		f.best = append(f.best, durs[0])
		f.spread = append(f.spread, durs[len(durs)/4]/durs[0])
		f.alone = f.alone || float64(durs[0]) < oneCore(a, k.name, k.form)+more
	}
	return f
}

// quickFork reports whether divided operators of the backward take less than a fork and join
// without enough cores.
func quickFork(a *analysis.Analysis) bool {
	type key struct{ name, form uint32 }
	type runs struct {
		n    int
		best float32
	}
	seen := map[key]runs{}
	a.EachInner(func(_ *trace.Thread, i *trace.Inner) {
		least, ok := splitBackward[a.Names.List[i.Name].Text]
		if !ok || i.Form == 0 {
			return
		}
		if in := a.Forms[i.Form].Inputs; len(in) == 0 || in[0].Elements() <= least {
			return
		}
		k := key{i.Name, i.Form}
		r := seen[k]
		if r.n == 0 || i.Dur < r.best {
			r.best = i.Dur
		}
		r.n++
		seen[k] = r
	})
	for _, r := range seen {
		if r.n >= forkRuns && r.best < forkNS {
			return true
		}
	}
	return false
}

// oneCore returns twice the time of a cheap operator on one core.
func oneCore(a *analysis.Analysis, name, form uint32) float64 {
	ns := forkElement * a.Forms[form].Inputs[0].Elements()
	if cheapest[a.Names.List[name].Text] {
		ns /= 2
	}
	return ns
}

// forkedElements returns the number of elements of a cheap operator if PyTorch divides an operator
// of that size over threads, and 0 otherwise.
func forkedElements(a *analysis.Analysis, o *trace.Op) float64 {
	name := a.Names.List[o.Name].Text
	if o.Form == 0 || !cheap[name] && !cheapest[name] {
		return 0
	}
	in := a.Forms[o.Form].Inputs
	if len(in) == 0 || in[0].Width > 4 {
		return 0
	}
	n := in[0].Elements()
	if n < forkElements || cheapest[name] && n <= 40_000 {
		return 0
	}
	return n
}

// cheap operators take well under 2 ns per element on one core. Operators that only add or multiply
// are divided from 32,768 elements on.
var (
	cheap = map[string]bool{"aten::gelu": true, "aten::silu": true, "aten::layer_norm": true, "aten::tanh": true, "aten::sigmoid": true,
		"aten::sin": true, "aten::cos": true, "aten::exp": true, "aten::softmax": true}
	cheapest = map[string]bool{"aten::add": true, "aten::add_": true, "aten::mul": true, "aten::mul_": true, "aten::sub": true, "aten::div": true,
		"aten::relu": true, "aten::copy_": true}
)

// splitBackward is the number of elements from which operators of the backward are divided.
var splitBackward = map[string]float64{"aten::gelu_backward": 16_384, "aten::native_layer_norm_backward": 16_384,
	"aten::silu_backward": 40_000, "aten::tanh_backward": 40_000, "aten::sigmoid_backward": 40_000, "aten::threshold_backward": 40_000}
