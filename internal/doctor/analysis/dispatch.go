package analysis

import (
	"slices"

	"haul/internal/doctor/trace"
)

// An operator on a CPU takes time besides its work: Python calls it, and PyTorch checks its
// arguments, finds its kernel and makes its result. How long that takes is read out of the
// recording, from the operators that do next to nothing and the pauses between operators, so that a
// slower machine is judged alike.

const (
	// dispatchNS is the most that an operator without work takes, ns: a recording may hold none.
	dispatchNS = 5000
	// disturbedTimes is how many times as long as its kind usually does an operator takes that has
	// lost its core. Runs of a kind are operators of one name, on one form of inputs.
	disturbedTimes = 4
	// alikeTimes is how many times as much, for their length, operators and pauses may lose to other
	// programs: these take a core away at any moment.
	alikeTimes = 3
	kindRuns   = 256 // runs of a kind that its usual time is taken from
)

// Dispatch is what issuing operators costs the main thread of a job without a GPU.
type Dispatch struct {
	Bare  float64 // ns that an operator takes without any work, for itself and for each one inside it
	Pause float64 // ns of the usual pause before an operator
	All   int     // operators of the main thread
	Small []SmallOp
	// Ns is what issuing the small ones takes: as long as they would without work, and the pauses
	// before them.
	Ns, Pauses float64
	Work       float64 // ns that small ones take beyond that
	// Disturbed is for how long other programs held the core, and of that in pauses, ns.
	Disturbed, DisturbedPauses float64
}

// SmallOp is an operator that takes less time for its work than for being issued.
type SmallOp struct {
	Op   *trace.Op
	Step int
	Cost float64 // ns
}

// Share is the part of the steps that issuing small operators takes, without what other programs
// took.
func (d *Dispatch) Share(a *Analysis) float64 {
	return d.Ns / max(1, float64(a.Wall)-d.Disturbed)
}

// opKind is the runs of one operator on one form of inputs.
type opKind struct {
	name, form uint32
	nested     uint16
}

// Dispatch measures the free operators of the main thread. It is nil where a GPU has the work, and
// where pauses are too few to have a usual length.
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
	away := trace.Union(slices.Concat(a.InLoop, a.Compiling)) // the loader's and the compiler's operators are theirs
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
		lead := min(float64(o.Lead), LongTimes*pause) // the framework's own pauses are of any length
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

// disturbed sets for how long other programs held the core. Operators that take unusually long may
// have more to do, and long pauses may be the program's own. But one that loses its core loses it
// in operators and in pauses, for their length about as often.
func (d *Dispatch) disturbed(lost, kept, lostPauses, keptPauses float64) {
	if kept == 0 || keptPauses == 0 {
		return
	}
	d.DisturbedPauses = min(lostPauses, alikeTimes*keptPauses*lost/kept)
	d.Disturbed = min(lost, alikeTimes*kept*lostPauses/keptPauses) + d.DisturbedPauses
}
