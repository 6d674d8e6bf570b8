package analysis

import (
	"slices"

	"haul/internal/doctor/trace"
)

// A job without a GPU is analysed by its main thread. In operators it computes. The time outside
// them is attributed to the loader, to exposed collectives, or to Python, with the same
// intersections of intervals as a GPU's idle time.

// attributeHost attributes the time of the main thread outside operators, in a job without a GPU.
func (a *Analysis) attributeHost() {
	th := a.Main
	if th == nil {
		for _, s := range trace.Clip(a.Loader, a.Steps) {
			a.Idle[IdleLoader] += float64(s.End - s.Start)
		}
		return
	}
	w := &walker{a: a, host: a.hostCollectives(), weight: 1, threads: busiest(a.Threads, func(th *trace.Thread) int {
		if th.Feeds {
			return 0
		}
		return th.Ops.Len()
	})}
	w.usual = usualPause(th)
	pauses := map[between]*pause{}
	for step, s := range a.Steps {
		w.pieces = w.pieces[:0]
		w.cut(trace.Span(s), a.InLoop, IdleLoader, func(g trace.Span) {
			w.cut(g, a.Compiling, IdleCompile, func(g trace.Span) { w.ask(g, th, 0) })
		})
		places := around(w.pieces)
		for i, p := range w.pieces {
			switch p.Kind {
			case IdleLoader, IdleComm, IdleCompile:
				a.book(p)
			case IdleBetween:
				here := pauses[places[i]]
				if here == nil {
					here = &pause{}
					pauses[places[i]] = here
				}
				// A pause between two operators belongs to them, and a pause inside the framework's
				// loops to these. Long intervals of the program are Python.
				parts := walker{a: a}
				var long, short float64
				parts.cut(p.Span, a.Framework, IdleBetween, func(r trace.Span) {
					kind := IdleBetween
					if w.isLong(r.End - r.Start) {
						kind = IdlePython
						long += float64(r.End - r.Start)
					}
					parts.add(Piece{Span: r, Kind: kind})
				})
				here.add(step, long)
				for _, part := range parts.pieces {
					part.Thread = p.Thread
					a.book(part)
					if part.Kind == IdleBetween {
						short += float64(part.End - part.Start)
					}
				}
				if i+1 < len(w.pieces) && w.pieces[i+1].Op != nil && a.Launched == 0 { // a launch waits for a GPU that was not recorded
					w.pieces[i+1].Op.Lead += float32(short)
				}
			}
		}
	}
	a.Recurring = recurring(pauses, len(a.Steps))
}

// book counts a piece of time outside the operators.
func (a *Analysis) book(p Piece) {
	a.Idle[p.Kind] += float64(p.End - p.Start)
	a.hold(&p)
}

// between identifies a position in the program: the names of the operators before and after a
// pause.
type between struct{ before, after uint32 }

// around returns the operators before and after each piece, 0 at the start or end of a step.
func around(pieces []Piece) []between {
	at := make([]between, len(pieces))
	var last uint32
	for i := range pieces {
		at[i].before = last
		if o := pieces[i].Op; o != nil {
			last = o.Name + 1
		}
	}
	last = 0
	for i := len(pieces) - 1; i >= 0; i-- {
		at[i].after = last
		if o := pieces[i].Op; o != nil {
			last = o.Name + 1
		}
	}
	return at
}

// pause holds the time of a position in each step.
type pause struct {
	steps int // number of steps that pass the position
	last  int // the last of these steps, counted from 1
	long  []float64
	in    int // the step of the last of long
}

func (p *pause) add(step int, long float64) {
	if p.last != step+1 {
		p.last = step + 1
		p.steps++
	}
	if long == 0 {
		return
	}
	if n := len(p.long); n > 0 && p.in == step {
		p.long[n-1] += long
		return
	}
	p.long, p.in = append(p.long, long), step
}

// recurring returns the time of long pauses in all steps, ns, without interruptions by the machine.
// A program pauses at the same positions in every step, while a thread loses its core anywhere. So
// a position in most steps counts with its median step, and a position in few steps, if steps
// differ, with its total.
func recurring(pauses map[between]*pause, steps int) float64 {
	var ns float64
	for _, p := range pauses {
		if 2*p.steps <= steps {
			for _, long := range p.long {
				ns += long
			}
			continue
		}
		// The other steps have no long pause.
		if at := (steps-1)/2 - (steps - len(p.long)); at >= 0 {
			slices.Sort(p.long)
			ns += p.long[at] * float64(steps)
		}
	}
	return ns
}

// fewPauses is the number of pauses up to which they have no usual length.
const fewPauses = 8

// usualPause returns the median pause between a thread's operators.
func usualPause(th *trace.Thread) int64 {
	var list []int64
	for i := 1; i < th.Ops.Len(); i++ {
		if ns := th.Ops.At(i).Start - th.Ops.At(i-1).End(); ns > 0 {
			list = append(list, ns)
		}
	}
	if len(list) < fewPauses {
		return 0
	}
	return Median(list)
}
