package analysis

import (
	"slices"

	"haul/internal/doctor/trace"
)

// An operator on a CPU takes time besides its work: Python calls it, and PyTorch checks its
// arguments, selects its kernel and allocates its result. This time is measured in the recording
// itself, from operators with almost no work and from pauses between operators, so that it fits the
// machine.

const (
	// dispatchNS limits the time of an operator without work, in ns, for recordings that have none.
	dispatchNS = 5000
	// disturbedTimes is the duration in usual durations of its kind from which an operator has lost
	// its core. The runs of a kind have the same operator and the same form of inputs.
	disturbedTimes = 4
	// alikeTimes is the largest ratio between the fractions of time that operators and pauses lose
	// to other programs, which interrupt at random times.
	alikeTimes = 3
	kindRuns   = 256 // number of runs of a kind that its usual time is computed from
)

// Dispatch holds the cost of issuing operators on the main thread of a job without a GPU.
type Dispatch struct {
	Bare  float64 // ns per operator without any work, counted for each operator inside it too
	Pause float64 // ns of the usual pause before an operator
	All   int     // number of operators of the main thread
	Small []SmallOp
	// Cost of issuing small operators: their time without work, and the pauses before them.
	Ns, Pauses float64
	Work       float64 // ns of small operators beyond that
	// Time in ns in which other programs used the core, and the part of it in pauses.
	Disturbed, DisturbedPauses float64
}

// SmallOp is an operator whose work takes less time than issuing it.
type SmallOp struct {
	Op   *trace.Op
	Step int
	Cost float64 // ns
}

// Share returns the fraction of the steps that issuing small operators takes, without the time that
// other programs used.
func (d *Dispatch) Share(a *Analysis) float64 {
	return d.Ns / max(1, float64(a.Wall)-d.Disturbed)
}

// opKind holds the runs of one operator on one form of inputs.
type opKind struct {
	name, form uint32
	nested     uint16
}

// Dispatch measures the free operators of the main thread. It returns nil if the job uses a GPU, or
// has too few pauses to know their usual length.
func (a *Analysis) Dispatch() *Dispatch {
	if !a.OnHost() || a.Format != "" || a.Launched > 0 {
		return nil
	}
	pause := float64(usualPause(a.Main))
	if pause == 0 {
		return nil
	}
	type run struct {
		kind, step int32
		op         *trace.Op
	}
	var runs []run
	ids := map[opKind]int32{}
	var kinds []opKind
	var durs [][]float32
	away := trace.Union(slices.Concat(a.InLoop, a.Compiling)) // operators of the loader and of the compiler do not count
	a.eachOn(a.Main, func(step int, o *trace.Op) {
		if trace.Covered(away, trace.Span{Start: o.Start, End: o.Start + 1}) > 0 {
			return
		}
		k := opKind{o.Name, o.Form, o.Nested}
		id, ok := ids[k]
		if !ok {
			id = int32(len(kinds))
			ids[k] = id
			kinds, durs = append(kinds, k), append(durs, nil)
		}
		if len(durs[id]) < kindRuns {
			durs[id] = append(durs[id], o.Dur)
		}
		runs = append(runs, run{id, int32(step), o})
	})
	if len(runs) == 0 {
		return nil
	}
	usual := make([]float64, len(kinds))
	for id := range kinds {
		usual[id] = float64(Median(durs[id]))
	}
	each := make([]float32, len(runs))
	for i, r := range runs {
		each[i] = float32(usual[r.kind] / float64(1+kinds[r.kind].nested))
	}
	slices.Sort(each)
	d := &Dispatch{Bare: min(float64(each[len(each)/4]), pause/2, dispatchNS), Pause: pause, All: len(runs)}
	var lost, kept, lostPauses, keptPauses float64
	var before *trace.Op
	for _, r := range runs {
		o, most := r.op, disturbedTimes*usual[r.kind]
		took := min(float64(o.Dur), most)
		lost, kept = lost+float64(o.Dur)-took, kept+took
		lead := min(float64(o.Lead), LongTimes*pause) // pauses inside the framework may have any length
		lostPauses, keptPauses = lostPauses+float64(o.Lead)-lead, keptPauses+lead
		bare := d.Bare * float64(1+kinds[r.kind].nested)
		if o.Cause == 0 && usual[r.kind] <= 2*bare+pause {
			cost := min(took, bare)
			d.Work += took - cost
			if before == nil || before.Cause == 0 {
				cost += lead
				d.Pauses += lead
			}
			d.Ns += cost
			d.Small = append(d.Small, SmallOp{o, int(r.step), cost})
		}
		before = o
	}
	d.disturbed(lost, kept, a.Idle[IdlePython]+lostPauses, keptPauses)
	return d
}

// disturbed sets the time in which other programs used the core. Long operators may have more work,
// and long pauses may be the program's. But a thread that loses its core loses it in operators and
// in pauses, in proportion to their length.
func (d *Dispatch) disturbed(lost, kept, lostPauses, keptPauses float64) {
	if kept == 0 || keptPauses == 0 {
		return
	}
	d.DisturbedPauses = min(lostPauses, alikeTimes*keptPauses*lost/kept)
	d.Disturbed = min(lost, alikeTimes*kept*lostPauses/keptPauses) + d.DisturbedPauses
}
