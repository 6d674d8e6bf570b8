package doctor

import (
	"fmt"
)

// What was recorded is said before any finding: a first use, the capture of a graph, a step cut out
// of a longer run or a program too small to judge tell nothing about how the run behaves once warm.
// Where one of these holds most of the idle time, the findings are kept as notes and no verdict is
// given.

// The words of Report.Recorded.
const (
	recordedCold    = "cold-start"
	recordedCapture = "graph-capture"
	recordedCut     = "cut-out"
	recordedToy     = "toy"
)

const (
	coldShare    = 0.20 // of the idle time in first uses
	captureShare = 0.10 // of the step under capture
	cutShare     = 0.20 // of the idle time behind work that was not recorded
	cutStep      = 0.05 // and of the step
	toyKernels   = 32   // in the whole recording
	toyBusy      = 0.5
	lostShare    = 0.10 // of the launches without GPU work
)

// Recording is one thing that was recorded, in a word and in a sentence.
type Recording struct {
	ID    string `json:"id"`
	Words string `json:"words"`
}

// recordedList says what kind of recording this is.
func (a *analysis) recordedList() []Recording {
	out := []Recording{}
	wall := float64(a.wall)
	if compile := a.idle[idleCompile]; compile >= 0.1*wall && !a.compilesLate() {
		out = append(out, Recording{recordedCold, fmt.Sprintf("a cold start: torch.compile compiles for %s ms of %s ms; warm up for a few steps before recording",
			figure(compile/1e6), figure(wall/1e6))})
	}
	if len(a.devices) == 0 {
		return out
	}
	if cold := a.idle[idleCold]; len(out) == 0 && cold >= coldShare*a.idleNS && cold >= 0.1*wall {
		name, longest := a.longestCold()
		out = append(out, Recording{recordedCold, fmt.Sprintf("a cold start: first uses of the driver, its libraries and kernels hold %s ms of %s ms idle time (the longest, %s, %s ms); warm up for a few steps before recording",
			figure(cold/1e6), figure(a.idleNS/1e6), name, figure(longest/1e6))})
	}
	if captured := float64(total(clip(a.captured, a.steps))); captured >= captureShare*wall {
		out = append(out, Recording{recordedCapture, fmt.Sprintf("a graph being captured for %s ms of %s ms: launches inside a capture start no work; record the replays",
			figure(captured/1e6), figure(wall/1e6))})
	}
	if lost := a.idle[idleUnrecorded]; lost >= cutShare*a.idleNS && lost >= cutStep*wall {
		out = append(out, Recording{recordedCut, fmt.Sprintf("a step cut out of a longer run: for %s ms the GPU shows no work though work was queued, behind something that was not recorded; the CPU cannot be judged by that",
			figure(lost/1e6))})
	}
	if a.kernels < toyKernels && a.busy < toyBusy*wall {
		out = append(out, Recording{recordedToy, fmt.Sprintf("a toy: %s in all, %s ms of GPU work, is too little to judge", count1(a.kernels, "kernel"), figure(a.kernel/1e6))})
	}
	return out
}

func (a *analysis) longestCold() (string, float64) {
	name, longest := "", 0.0
	for _, th := range a.threads {
		for i := range th.calls.len() {
			if c := th.calls.at(i); c.cold && float64(c.dur) > longest {
				name, longest = printable(a.names.list[c.name].text), float64(c.dur)
			}
		}
	}
	return name, longest
}

// remarks are the recording's faults and what they keep the doctor from seeing.
func (a *analysis) remarks() []string {
	out := append([]string{}, a.Remarks()...)
	if !a.marked && a.format == "" {
		out = append(out, "no ProfilerStep in the trace: the whole recording counts as one step (give the profiler schedule= and call prof.step() after each step)")
	}
	if a.skipped > 0 {
		out = append(out, fmt.Sprintf("%s at the start left out: cold, up to %s times the middle step", count1(a.skipped, "step"), thousands(int(a.coldest+0.5))))
	}
	if a.ahead {
		out = append(out, "the CPU runs ahead of the GPU: steps are measured on the GPU, from the end of one's last kernel to the end of the next one's")
	}
	switch {
	case a.gpu.len() == 0 && a.launched > 0:
		out = append(out, fmt.Sprintf("%s and no GPU events: the profiler could not reach the GPU's counters (permission, or another profiler at work), so only the CPU side can be judged", count1(a.launched, "launch")))
	case a.gpu.len() == 0 && a.own:
		out = append(out, "a step of Haul's own on a CPU: haul profile books it op by op against what the machine can do")
	case a.gpu.len() == 0:
		out = append(out, "no GPU events in the trace: only the CPU side can be judged (PyTorch records a GPU with ProfilerActivity.CUDA or .XPU; Apple's it cannot record)")
	case !a.shapes && a.format == "":
		out = append(out, "no shapes in the trace: repeated work cannot be told from loops (record_shapes=True)")
	}
	if a.gpu.len() > 0 && float64(a.lost) > lostShare*float64(a.launched) && total(clip(a.captured, a.cpuSteps)) == 0 {
		out = append(out, fmt.Sprintf("%s of %s launches have no GPU work in the recording: it was cut, sampled or lost, and idle time may be overstated", thousands(a.lost), thousands(a.launched)))
	}
	if over := total(clip(a.overhead, a.steps)); float64(over) > 0.02*float64(a.wall) {
		out = append(out, fmt.Sprintf("the profiler's own work holds %s ms per step", figure(a.ms(float64(over)))))
	}
	return out
}
