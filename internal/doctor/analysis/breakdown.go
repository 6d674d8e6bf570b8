package analysis

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// Breakdown holds the figures that reports show besides the verdict. Shares are of the step.
type Breakdown struct {
	ComputeShare     float64       `json:"compute_share"`      // kernels other than communication
	CommExposedShare float64       `json:"comm_exposed_share"` // communication while no other kernel runs
	CommHiddenShare  float64       `json:"comm_overlapped_share"`
	CopyShare        float64       `json:"copy_share"` // copies and memsets while no kernel runs
	IdleShare        float64       `json:"idle_share"`
	Families         []FamilyTime  `json:"kernel_families"`
	QueueDepth       float64       `json:"queue_depth"` // number of pieces of work issued and not finished, mean over launches
	QueueMS          float64       `json:"queue_ms"`    // from issue to start, median
	Copies           []CopyRate    `json:"copy_bandwidth"`
	Collectives      []CommTime    `json:"collectives"`
	GPUs             []GPU         `json:"gpus"`
	Memory           []MemoryLevel `json:"memory,omitempty"`
	Peak             *MemoryPeak   `json:"memory_peak,omitempty"`
	Graphs           []GraphReplay `json:"graphs,omitempty"`
	Roofline         []OpRate      `json:"roofline"`
	Modules          []ModuleTime  `json:"modules"`
	Path             []PathPart    `json:"critical_path"`
	Order            []PathLeg     `json:"critical_path_in_order"`
}

// FamilyTime sums the kernels of one family.
type FamilyTime struct {
	Family string  `json:"family"`
	Count  float64 `json:"count"`
	MS     float64 `json:"ms"`
	Share  float64 `json:"share"` // of the kernels' time
}

// CopyRate sums the copies of one direction.
type CopyRate struct {
	Direction string  `json:"direction"`
	Count     float64 `json:"count"`
	MB        float64 `json:"mb"`
	MS        float64 `json:"ms"`
	GBps      float64 `json:"gb_per_s"`
}

// CommTime sums the collectives of one kind and group.
type CommTime struct {
	Kind      string  `json:"kind"`
	Group     string  `json:"group,omitempty"`
	Count     float64 `json:"count"`
	MS        float64 `json:"ms"`
	ExposedMS float64 `json:"exposed_ms"`
	MB        float64 `json:"mb"`
	BusGBps   float64 `json:"bus_gb_per_s"`
}

// GPU describes one device of the trace.
type GPU struct {
	Device    int     `json:"device"`
	BusyShare float64 `json:"busy_share"`
	Kernels   int     `json:"kernels"`
	Gaps      int     `json:"gaps"`
	IdleMS    float64 `json:"idle_ms"`
	WidestMS  float64 `json:"widest_gap_ms"`
}

var busWords = [...]string{"within the GPU", "to the GPU, page-locked", "to the GPU, pageable", "to the host, page-locked", "to the host, pageable"}

func (a *Analysis) Breakdown() *Breakdown {
	b := &Breakdown{Families: []FamilyTime{}, Copies: []CopyRate{}, Collectives: []CommTime{}, GPUs: []GPU{}}
	wall := float64(a.Wall)
	b.splitGPU(a, wall)
	var ns [trace.Families]float64
	var n [trace.Families]int
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		if _, ok := trace.Within(a.Steps, g.Start); ok && g.Kind == trace.CatKernel {
			f := a.Names.List[g.Name].Family
			if g.Comm {
				f = trace.FamilyComm
			}
			ns[f] += float64(g.Dur)
			n[f]++
		}
	}
	for f := range trace.Families {
		if n[f] > 0 {
			b.Families = append(b.Families, FamilyTime{f.String(), a.PerStep(float64(n[f])), a.Ms(ns[f]), ns[f] / max(1, a.Kernel)})
		}
	}
	slices.SortStableFunc(b.Families, func(x, y FamilyTime) int { return cmp.Compare(y.MS, x.MS) })
	for d, s := range a.bus {
		if s.n > 0 {
			b.Copies = append(b.Copies, CopyRate{busWords[d], a.PerStep(float64(s.n)), a.PerStep(s.bytes) / (1 << 20), a.Ms(s.ns), s.bytes / max(1, s.ns)})
		}
	}
	families := slices.SortedFunc(maps.Values(a.Comm.Families), func(x, y *CommFamily) int {
		return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Kind+phrase.Printable(x.Group), y.Kind+phrase.Printable(y.Group)))
	})
	for _, f := range families {
		b.Collectives = append(b.Collectives, CommTime{f.Kind, phrase.Printable(f.Group), a.PerStep(float64(f.N)), a.Ms(f.NS), a.Ms(f.Exposed),
			a.PerStep(float64(f.Bytes)) / (1 << 20), f.RateBytes / max(1, f.RateNS) * Traffic(f.Kind, f.Members)})
	}
	b.QueueDepth, b.QueueMS = a.queue()
	b.Memory, b.Peak = a.memory()
	b.Graphs = a.replays()
	b.Roofline, b.Modules = a.Roofline(), a.Modules()
	b.Path, b.Order = b.CriticalPath(a), a.pathInOrder()
	return b
}

func (b *Breakdown) splitGPU(a *Analysis, wall float64) {
	for _, d := range a.Devices {
		var compute []trace.Span
		for _, i := range d.Works {
			g := a.GPU.At(int(i))
			if g.Kind == trace.CatKernel && !g.Comm {
				compute = append(compute, trace.Span{Start: g.Start, End: g.End()})
			}
		}
		compute = trace.Clip(trace.Union(compute), a.Steps)
		part := 1 / wall / float64(len(a.Devices))
		c := float64(trace.Total(compute))
		b.ComputeShare += c * part
		b.CommExposedShare += float64(d.exposed) * part
		b.CommHiddenShare += float64(d.commBusy-d.exposed) * part
		b.CopyShare += max(0, float64(d.busy)-c-float64(d.exposed)) * part
		b.IdleShare += float64(a.Wall-d.busy) * part
		var widest int64
		for _, g := range d.Gaps {
			widest = max(widest, g.End-g.Start)
		}
		b.GPUs = append(b.GPUs, GPU{int(d.ID), float64(d.busy) / wall, d.kernels, len(d.Gaps), a.Ms(float64(a.Wall - d.busy)), float64(widest) / 1e6})
	}
	if a.Comm.Host {
		b.CommExposedShare = a.Comm.Exposed / wall
		b.CommHiddenShare = (a.Comm.Total - a.Comm.Exposed) / wall
	}
}

// queue returns the mean number of issued and unfinished pieces of work at each launch, and the
// median time in the queue.
func (a *Analysis) queue() (depth, ms float64) {
	if len(a.Devices) == 0 {
		return 0, 0
	}
	var issued, done []int64
	var late []float64
	for _, i := range a.Devices[0].Works {
		g := a.GPU.At(int(i))
		th, k, ok := a.callOf(g)
		if !ok {
			continue
		}
		at := th.Calls.At(k).End()
		if _, ok := trace.Within(a.CPUSteps, at); !ok {
			continue
		}
		issued, done = append(issued, at), append(done, g.End())
		late = append(late, float64(max(0, g.Start-at)))
	}
	if len(issued) == 0 {
		return 0, 0
	}
	slices.Sort(issued)
	slices.Sort(done)
	sum := 0
	for i, at := range issued {
		sum += i + 1 - sort.Search(len(done), func(k int) bool { return done[k] > at })
	}
	return float64(sum) / float64(len(issued)), Median(late) / 1e6
}

// PathPart is the part of the critical path with one cause.
type PathPart struct {
	What  string  `json:"what"`
	MS    float64 `json:"ms"` // per step
	Share float64 `json:"share"`
}

// CriticalPath returns the parts of a step's time, largest first: the GPU's work by family, and
// idle time by cause. The parts add up to the step. The gain of a finding is at most its part.
func (b *Breakdown) CriticalPath(a *Analysis) []PathPart {
	step := a.Ms(float64(a.Wall))
	out := []PathPart{}
	add := func(what string, ms float64) {
		if ms > 0 {
			out = append(out, PathPart{what, ms, ms / step})
		}
	}
	if len(a.Devices) > 0 {
		var kernels float64
		for _, f := range b.Families {
			if f.Family != trace.FamilyComm.String() {
				kernels += f.MS
			}
		}
		compute := step * b.ComputeShare
		for _, f := range b.Families { // concurrent kernels divide their common time
			if f.Family != trace.FamilyComm.String() {
				add("the GPU computes: "+f.Family, compute*f.MS/max(kernels, 1e-12))
			}
		}
		if !a.Comm.Host {
			add("the GPU communicates, nothing beside it", step*b.CommExposedShare)
		}
		add("the GPU copies, nothing beside it", step*b.CopyShare)
	}
	var idle float64
	for _, s := range a.IdleList() {
		idle += s.MS
		who := "the GPU waits, the CPU is "
		if len(a.Devices) == 0 {
			who = "the main thread is "
		}
		add(who+s.What, s.MS)
	}
	if len(a.Devices) == 0 {
		add("the main thread runs operators", step-idle)
	}
	slices.SortStableFunc(out, func(x, y PathPart) int { return cmp.Compare(y.MS, x.MS) })
	return out
}
