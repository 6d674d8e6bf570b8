package rule

import (
	"fmt"
	"slices"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// Some recordings do not show a warm run: a first use, the capture of a graph, a part of a longer
// run, or a program that is too small. They are reported before any finding. If one of these
// explains most of the idle time, findings become notes and there is no verdict.

// The values of Report.Recorded.
const (
	recordedCold    = "cold-start"
	recordedCapture = "graph-capture"
	recordedCut     = "cut-out"
	recordedToy     = "toy"
	recordedEnds    = "cut-off"
	recordedGraph   = "graph-unrecorded"
	recordedSampled = "sampled"
)

// certain lists, by what was recorded, the findings that remain certain. Work that was not recorded
// makes a GPU look idle, but changes neither the time of collectives nor copies, types and
// autograd's graph. A start-up and a toy program show nothing about the run.
var certain = map[string][]string{
	recordedCut:     {"comm-exposed", "straggler", "imbalance", "pageable-copy", "anomaly-mode", "dead-graph", "recompile", "fp64", "fp32-matmul"},
	recordedGraph:   {"comm-exposed", "straggler", "imbalance", "pageable-copy", "anomaly-mode", "dead-graph", "recompile", "fp64", "fp32-matmul"},
	recordedSampled: {"anomaly-mode", "dead-graph", "recompile"},
	recordedEnds:    {"straggler", "pageable-copy", "anomaly-mode", "dead-graph", "recompile", "fp64", "fp32-matmul"},
}

// Withheld reports whether the kind of recording leaves a finding in doubt.
func Withheld(recorded []string, id string) bool {
	for _, word := range recorded {
		if !slices.Contains(certain[word], id) {
			return true
		}
	}
	return false
}

const (
	coldShare    = 0.20 // fraction of the idle time in first uses
	captureShare = 0.10 // fraction of the step during a capture
	cutShare     = 0.20 // fraction of the idle time after work that was not recorded
	cutStep      = 0.05 // and fraction of the step
	toyPieces    = 32   // kernels and copies in the whole recording
	toyBusy      = 0.5
	lostShare    = 0.10 // fraction of the launches without GPU work
	sampledShare = 0.90 // the same fraction in a sampled recording
	sampledWorks = 32   // least number of pieces of work in a sampled recording
	graphGaps    = 3    // number of recurring gaps around launches of graphs
	graphShare   = 0.8  // fraction of the time after work that was not recorded
	keptShare    = 0.01 // fraction of the ordinary launches that may be lost in it
)

// Recording is a property of a recording, as a keyword and a sentence.
type Recording struct {
	ID    string `json:"id"`
	Words string `json:"words"`
}

// RecordedList returns the properties of this recording.
func RecordedList(a *analysis.Analysis) []Recording {
	out := []Recording{}
	wall := float64(a.Wall)
	if words := cutOff(a); words != "" {
		return append(out, Recording{recordedEnds, words})
	}
	if compile := a.Idle[analysis.IdleCompile]; compile >= 0.1*wall && !compilesLate(a) {
		out = append(out, Recording{recordedCold, fmt.Sprintf("a cold start: torch.compile compiles for %s ms of %s ms; warm up for a few steps before recording",
			phrase.Figure(compile/1e6), phrase.Figure(wall/1e6))})
	}
	if len(a.Devices) == 0 {
		return out
	}
	idle := a.IdleNS + float64(a.Before.End-a.Before.Start)
	if cold := a.Idle[analysis.IdleCold] + a.Lead; len(out) == 0 && cold >= coldShare*idle && cold >= 0.1*(wall+idle-a.IdleNS) {
		name, longest := longestCold(a)
		out = append(out, Recording{recordedCold, fmt.Sprintf("a cold start: first uses of the driver, its libraries and kernels hold %s ms of %s ms idle time (the longest, %s, %s ms); warm up for a few steps before recording",
			phrase.Figure(cold/1e6), phrase.Figure(idle/1e6), name, phrase.Figure(longest/1e6))})
	}
	if captured := float64(trace.Total(trace.Clip(a.Captured, a.Steps))); captured >= captureShare*wall {
		out = append(out, Recording{recordedCapture, fmt.Sprintf("a graph being captured for %s ms of %s ms: launches inside a capture start no work; record the replays",
			phrase.Figure(captured/1e6), phrase.Figure(wall/1e6))})
	}
	if sampled(a) {
		out = append(out, Recording{recordedSampled, fmt.Sprintf("a sample: %s of %s launches have no GPU work in the recording, and %s pieces of GPU work are in it; what is idle and what is many cannot be told from it",
			phrase.Thousands(a.Lost), phrase.Thousands(a.Launched), phrase.Thousands(a.GPU.Len()))})
		return out
	}
	if lost := a.Idle[analysis.IdleUnrecorded]; lost >= cutShare*a.IdleNS && lost >= cutStep*wall {
		if a.InGraphs.Gaps >= graphGaps && a.InGraphs.NS >= graphShare*lost && float64(a.Lost) <= keptShare*float64(a.Launched) {
			out = append(out, Recording{recordedGraph, fmt.Sprintf("graphs whose kernels are not all recorded: beside launches of CUDA graphs the GPU shows no work for %s ms in %s, though no ordinary launch lost its work; "+
				"idle time there, and what the graphs' kernels sum to, cannot be told", phrase.Figure(a.InGraphs.NS/1e6), phrase.Count1(a.InGraphs.Gaps, "gap"))})
		} else {
			out = append(out, Recording{recordedCut, fmt.Sprintf("a step cut out of a longer run: for %s ms the GPU shows no work though work was queued, behind something that was not recorded; the CPU cannot be judged by that",
				phrase.Figure(lost/1e6))})
		}
	}
	if a.Kernels+a.Copies < toyPieces && a.Busy < toyBusy*wall {
		out = append(out, Recording{recordedToy, fmt.Sprintf("a toy: %s in all, %s ms of GPU work, is too little to judge", phrase.Count1(a.Kernels, "kernel"), phrase.Figure(a.Kernel/1e6))})
	}
	return out
}

// cutOff returns a remark if the file ends too early, otherwise "". A profiler writes the CPU's
// events before the GPU's, and not in time order. So the missing events are spread over all steps,
// and a GPU that worked looks idle.
func cutOff(a *analysis.Analysis) string {
	switch {
	case !a.Cut():
		return ""
	case a.GPU.Len() == 0:
		return fmt.Sprintf("a file that is cut off after %s, before any GPU work: copy or record it again", phrase.Count1(a.Events, "event"))
	}
	return fmt.Sprintf("a file that is cut off after %s: GPU work is missing, and idle time is overstated; copy or record it again", phrase.Count1(a.Events, "event"))
}

func longestCold(a *analysis.Analysis) (string, float64) {
	name, longest := "", 0.0
	for _, th := range a.Threads {
		for i := range th.Calls.Len() {
			if c := th.Calls.At(i); c.Cold && float64(c.Dur) > longest {
				name, longest = phrase.Printable(a.Names.List[c.Name].Text), float64(c.Dur)
			}
		}
	}
	return name, longest
}

// Remarks returns the recording's faults and the analyses that they prevent.
func Remarks(a *analysis.Analysis) []string {
	out := append([]string{}, a.Remarks()...)
	if a.By != "" && a.Format != "" {
		out = append(out, fmt.Sprintf("steps go from one call of %s to the next", a.By))
	} else if a.By != "" {
		out = append(out, fmt.Sprintf("no ProfilerStep in the trace: steps go from one mark of %s to the next, and what comes before the first is left out", a.By))
	}
	if !a.Marked && a.Format == "" {
		out = append(out, "no ProfilerStep in the trace: the whole recording counts as one step (give the profiler schedule= and call prof.step() after each step)")
	}
	if before, after := a.Before.End-a.Before.Start, a.After.End-a.After.Start; before+after > 0 {
		out = append(out, fmt.Sprintf("a single step: %s ms before its first GPU work and %s ms after its last are left out, since one step does not show whether the next would wait for them (--from and --to read them)",
			phrase.Figure(float64(before)/1e6), phrase.Figure(float64(after)/1e6)))
	}
	if a.Skipped > 0 {
		out = append(out, fmt.Sprintf("%s at the start left out: cold, up to %s times the middle step", phrase.Count1(a.Skipped, "step"), phrase.Thousands(int(a.Coldest+0.5))))
	}
	if a.Ahead {
		out = append(out, "the CPU runs ahead of the GPU: steps are measured on the GPU, from the end of one's last kernel to the end of the next one's")
	}
	switch {
	case a.GPU.Len() == 0 && a.Cut():
		out = append(out, "no GPU events before the end of the file: only the CPU side can be judged")
	case a.GPU.Len() == 0 && a.Launched > 0:
		out = append(out, fmt.Sprintf("%s and no GPU events: the profiler could not reach the GPU's counters (permission, or another profiler at work), so only the CPU side can be judged", phrase.Count1(a.Launched, "launch")))
	case a.GPU.Len() == 0 && a.Own:
		out = append(out, "a step of Haul's own on a CPU: haul profile books it op by op against what the machine can do")
	case a.GPU.Len() == 0:
		out = append(out, "no GPU events in the trace: only the CPU side can be judged (PyTorch records a GPU with ProfilerActivity.CUDA or .XPU; Apple's it cannot record)")
	case !a.Shapes && a.Format == "":
		out = append(out, "no shapes in the trace: repeated work cannot be told from loops (record_shapes=True)")
	}
	if a.GPU.Len() > 0 && float64(a.Lost) > lostShare*float64(a.Launched) && trace.Total(trace.Clip(a.Captured, a.CPUSteps)) == 0 {
		out = append(out, fmt.Sprintf("%s of %s launches have no GPU work in the recording: it was cut, sampled or lost, and idle time may be overstated", phrase.Thousands(a.Lost), phrase.Thousands(a.Launched)))
	}
	if over := trace.Total(trace.Clip(a.Overhead, a.Steps)); float64(over) > 0.02*float64(a.Wall) {
		out = append(out, fmt.Sprintf("the profiler's own work holds %s ms per step", phrase.Figure(a.Ms(float64(over)))))
	}
	return out
}

// sampled reports whether a recording contains only a sample of the events: nearly every launch
// lacks its work, and yet there is work.
func sampled(a *analysis.Analysis) bool {
	return a.GPU.Len() >= sampledWorks && float64(a.Lost) >= sampledShare*float64(a.Launched) && a.Launched >= sampledWorks &&
		trace.Total(trace.Clip(a.Captured, a.CPUSteps)) == 0
}
