package rule

import (
	"fmt"
	"slices"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// oversubscribed looks for a CPU job with more threads than cores. PyTorch splits an elementwise
// operator past some ten thousand elements over its threads, and must wait for all of them: where
// cores are fewer, the operator waits for the scheduler. The best run of an operator shows that and
// is not disturbed by what else the machine does: a fork and join takes 10 to 30 µs on cores of
// their own, and past 100 µs for 32 threads on two cores.
//
// Threshold: cheap operators on 16 to 128 thousand elements take 80 µs in their best of four runs
// or more, every kind of them, and twice what one core needs for so many elements: 1 ns for each,
// half of that where they are only added, multiplied or copied.
//
// Threads that lack a core because of each other take short turns, and the operator takes about as
// long each time: the quarter point of its runs is 1.1 to 1.6 times the best. Where other processes
// hold the cores, a run takes as many of their turns as chance has it, milliseconds each: 15 to 30
// times the best. Past 3 times it is the machine's doing and a note.
const (
	forkElements = 16_000
	forkMost     = 131_072
	forkNS       = 80_000
	forkRuns     = 4
	forkForms    = 2
	forkUsual    = 30_000
	forkShare    = 0.03
	forkElement  = 2 // ns
	forkSteady   = 3 // times the best
)

var oversubscribed = Rule{
	ID:     "oversubscribed",
	remedy: "Give PyTorch as many threads as the process has cores: torch.set_num_threads(n) or OMP_NUM_THREADS, fewer per process where several share the machine, and look at the container's CPU limit.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		if !a.OnHost() || !a.Shapes {
			return nil
		}
		type key struct{ name, form uint32 }
		runs := map[key][]float32{}
		var ns float64
		var places []analysis.Place
		a.EachOp(func(th *trace.Thread, _, _ int, o *trace.Op) {
			if !isForked(a, o) {
				return
			}
			k := key{o.Name, o.Form}
			runs[k] = append(runs[k], o.Dur)
			if o.Cause == 0 && o.Dur > forkUsual {
				ns += float64(o.Dur) - forkUsual
				places = append(places, analysis.Place{Span: trace.Span{Start: o.Start, End: o.End()}, Thread: th})
			}
		})
		var list, spread []float32
		alone := false // one core by itself may take as long
		for k, durs := range runs {
			if len(durs) < forkRuns {
				continue
			}
			slices.Sort(durs)
			best := durs[0]
			list = append(list, best)
			spread = append(spread, durs[len(durs)/4]/best)
			alone = alone || float64(best) < oneCore(a, k.name, k.form)
		}
		ms := a.Ms(ns)
		if len(list) < forkForms || alone || slices.Min(list) < forkNS || a.Share(ms) < forkShare {
			return nil
		}
		slices.Sort(list)
		slices.Sort(spread)
		c := &cost{ms: ms, places: places, evidence: []string{
			fmt.Sprintf("elementwise operators on %s to %s elements, which run on several threads, take %s µs even in their best run (the middle of %s): with a core per thread it is 10 to 60",
				phrase.Thousands(forkElements), phrase.Thousands(forkMost), phrase.Figure(float64(list[len(list)/2])/1000), phrase.Count1(len(list), "kind")),
			"a thread that has no core holds all others at the end of each operator",
		}}
		if times := spread[len(spread)/2]; times > forkSteady {
			c.most = Note
			c.remedy = "Look at what else runs on these cores (top) and at the container's CPU limit before you change the program."
			c.evidence = append(c.evidence, fmt.Sprintf("a note: three of four runs take more than %s times as long as the best one, as where other processes hold the cores; threads that only lack cores because of each other take about as long each time", phrase.Figure(float64(times))))
		}
		return c
	},
}

// oneCore is twice what a cheap operator takes on one core.
func oneCore(a *analysis.Analysis, name, form uint32) float64 {
	ns := forkElement * a.Forms[form].Inputs[0].Elements()
	if cheapest[a.Names.List[name].Text] {
		ns /= 2
	}
	return ns
}

// isForked tells a cheap operator of a size that is split over threads and yet small.
func isForked(a *analysis.Analysis, o *trace.Op) bool {
	name := a.Names.List[o.Name].Text
	if o.Form == 0 || !cheap[name] && !cheapest[name] {
		return false
	}
	in := a.Forms[o.Form].Inputs
	if len(in) == 0 || in[0].Width > 4 {
		return false
	}
	n := in[0].Elements()
	if cheapest[name] {
		return n > 40_000 && n <= forkMost
	}
	return n >= forkElements && n <= forkMost
}

// cheap operators take well under 2 ns per element on one core. Those that only add or multiply are
// split from 32,768 elements on.
var (
	cheap = map[string]bool{"aten::gelu": true, "aten::silu": true, "aten::layer_norm": true, "aten::tanh": true, "aten::sigmoid": true,
		"aten::sin": true, "aten::cos": true, "aten::exp": true, "aten::softmax": true}
	cheapest = map[string]bool{"aten::add": true, "aten::add_": true, "aten::mul": true, "aten::mul_": true, "aten::sub": true, "aten::div": true,
		"aten::relu": true, "aten::copy_": true}
)
