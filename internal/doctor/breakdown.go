package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// Breakdown is the numbers people ask for beside the verdict. Shares are of the step.
type Breakdown struct {
	ComputeShare     float64       `json:"compute_share"`      // kernels other than communication
	CommExposedShare float64       `json:"comm_exposed_share"` // communication with no other kernel beside it
	CommHiddenShare  float64       `json:"comm_overlapped_share"`
	CopyShare        float64       `json:"copy_share"` // copies and memsets with no kernel beside them
	IdleShare        float64       `json:"idle_share"`
	Families         []FamilyTime  `json:"kernel_families"`
	QueueDepth       float64       `json:"queue_depth"` // work issued and not finished, mean at each launch
	QueueMS          float64       `json:"queue_ms"`    // from issue to start, median
	Copies           []CopyRate    `json:"copy_bandwidth"`
	Collectives      []CommTime    `json:"collectives"`
	GPUs             []GPU         `json:"gpus"`
	Memory           []MemoryLevel `json:"memory,omitempty"`
}

// FamilyTime is the kernels of one kind.
type FamilyTime struct {
	Family string  `json:"family"`
	Count  float64 `json:"count"`
	MS     float64 `json:"ms"`
	Share  float64 `json:"share"` // of the kernels' time
}

// CopyRate is the copies of one direction.
type CopyRate struct {
	Direction string  `json:"direction"`
	Count     float64 `json:"count"`
	MB        float64 `json:"mb"`
	MS        float64 `json:"ms"`
	GBps      float64 `json:"gb_per_s"`
}

// CommTime is the collectives of one kind and group.
type CommTime struct {
	Kind      string  `json:"kind"`
	Group     string  `json:"group,omitempty"`
	Count     float64 `json:"count"`
	MS        float64 `json:"ms"`
	ExposedMS float64 `json:"exposed_ms"`
	MB        float64 `json:"mb"`
	BusGBps   float64 `json:"bus_gb_per_s"`
}

// GPU is one device of the trace.
type GPU struct {
	Device    int     `json:"device"`
	BusyShare float64 `json:"busy_share"`
	Kernels   int     `json:"kernels"`
	Gaps      int     `json:"gaps"`
	IdleMS    float64 `json:"idle_ms"`
	WidestMS  float64 `json:"widest_gap_ms"`
}

// MemoryLevel is a point of the memory's timeline.
type MemoryLevel struct {
	MS float64 `json:"ms"` // since the first step
	MB float64 `json:"mb"`
}

// memoryPoints bounds the memory's timeline in a report.
const memoryPoints = 400

var busWords = [...]string{"within the GPU", "to the GPU, page-locked", "to the GPU, pageable", "to the host, page-locked", "to the host, pageable"}

func (a *analysis) breakdown() *Breakdown {
	b := &Breakdown{Families: []FamilyTime{}, Copies: []CopyRate{}, Collectives: []CommTime{}, GPUs: []GPU{}}
	wall := float64(a.wall)
	b.splitGPU(a, wall)
	var ns [families]float64
	var n [families]int
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		if _, ok := within(a.steps, g.start); ok && g.kind == catKernel {
			f := a.names.list[g.name].family
			if g.comm {
				f = familyComm
			}
			ns[f] += float64(g.dur)
			n[f]++
		}
	}
	for f := range families {
		if n[f] > 0 {
			b.Families = append(b.Families, FamilyTime{f.String(), a.perStep(float64(n[f])), a.ms(ns[f]), ns[f] / max(1, a.kernel)})
		}
	}
	slices.SortStableFunc(b.Families, func(x, y FamilyTime) int { return cmp.Compare(y.MS, x.MS) })
	for d, s := range a.bus {
		if s.n > 0 {
			b.Copies = append(b.Copies, CopyRate{busWords[d], a.perStep(float64(s.n)), a.perStep(s.bytes) / (1 << 20), a.ms(s.ns), s.bytes / max(1, s.ns)})
		}
	}
	for _, f := range a.comm.families {
		b.Collectives = append(b.Collectives, CommTime{f.kind, printable(f.group), a.perStep(float64(f.n)), a.ms(f.ns), a.ms(f.exposed),
			a.perStep(float64(f.bytes)) / (1 << 20), f.rateBytes / max(1, f.rateNS) * traffic(f.kind, f.members)})
	}
	slices.SortFunc(b.Collectives, func(x, y CommTime) int {
		return cmp.Or(cmp.Compare(y.MS, x.MS), cmp.Compare(x.Kind+x.Group, y.Kind+y.Group))
	})
	b.QueueDepth, b.QueueMS = a.queue()
	b.Memory = a.memoryLevels()
	return b
}

func (b *Breakdown) splitGPU(a *analysis, wall float64) {
	for _, d := range a.devices {
		var compute []span
		for _, i := range d.works {
			g := a.gpu.at(int(i))
			if g.kind == catKernel && !g.comm {
				compute = append(compute, span{g.start, g.end()})
			}
		}
		compute = clip(union(compute), a.steps)
		part := 1 / wall / float64(len(a.devices))
		c := float64(total(compute))
		b.ComputeShare += c * part
		b.CommExposedShare += float64(d.exposed) * part
		b.CommHiddenShare += float64(d.commBusy-d.exposed) * part
		b.CopyShare += max(0, float64(d.busy)-c-float64(d.exposed)) * part
		b.IdleShare += float64(a.wall-d.busy) * part
		var widest int64
		for _, g := range d.gaps {
			widest = max(widest, g.end-g.start)
		}
		b.GPUs = append(b.GPUs, GPU{int(d.id), float64(d.busy) / wall, d.kernels, len(d.gaps), a.ms(float64(a.wall - d.busy)), float64(widest) / 1e6})
	}
	if a.comm.host {
		b.CommExposedShare = a.comm.exposed / wall
		b.CommHiddenShare = (a.comm.total - a.comm.exposed) / wall
	}
}

// queue is how much work stood issued and unfinished at each launch, and how long work stood in
// line.
func (a *analysis) queue() (depth, ms float64) {
	if len(a.devices) == 0 {
		return 0, 0
	}
	var issued, done []int64
	var late []float64
	for _, i := range a.devices[0].works {
		g := a.gpu.at(int(i))
		th, k, ok := a.callOf(g)
		if !ok {
			continue
		}
		at := th.calls.at(k).end()
		if _, ok := within(a.cpuSteps, at); !ok {
			continue
		}
		issued, done = append(issued, at), append(done, g.end())
		late = append(late, float64(max(0, g.start-at)))
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
	return float64(sum) / float64(len(issued)), median(late) / 1e6
}

func (a *analysis) memoryLevels() []MemoryLevel {
	if len(a.memory) == 0 {
		return nil
	}
	every := (len(a.memory) + memoryPoints - 1) / memoryPoints
	var out []MemoryLevel
	for i := 0; i < len(a.memory); i += every {
		top := a.memory[i]
		for _, l := range a.memory[i:min(i+every, len(a.memory))] {
			if l.bytes > top.bytes {
				top = l
			}
		}
		out = append(out, MemoryLevel{float64(top.at-a.steps[0].start) / 1e6, float64(top.bytes) / (1 << 20)})
	}
	return out
}

// write prints the numbers for a person.
func (b *Breakdown) write(p func(format string, args ...any)) {
	p("\nThe step's time")
	for _, s := range []struct {
		what  string
		share float64
	}{{"compute", b.ComputeShare}, {"communication, exposed", b.CommExposedShare}, {"copies and memsets alone", b.CopyShare}, {"idle", b.IdleShare}, {"communication, hidden behind compute", b.CommHiddenShare}} {
		p("  %8s  %s", percent(s.share), s.what)
	}
	if len(b.Families) > 0 {
		p("\nKernels by what they compute, per step")
		for _, f := range b.Families {
			p("  %8s ms  %6s  %s, %s", figure(f.MS), percent(f.Share), f.Family, perStepCount(f.Count))
		}
	}
	if len(b.Collectives) > 0 {
		p("\nCollectives, per step")
		for _, c := range b.Collectives {
			group := ""
			if c.Group != "" {
				group = " in group " + c.Group
			}
			p("  %8s ms  %s%s, %s, %s ms exposed, %s MB, %.3g GB/s on the bus", figure(c.MS), c.Kind, group, perStepCount(c.Count), figure(c.ExposedMS), figure(c.MB), c.BusGBps)
		}
	}
	if len(b.Copies) > 0 {
		p("\nCopies, per step")
		for _, c := range b.Copies {
			p("  %8s ms  %s, %s, %s MB at %.3g GB/s", figure(c.MS), c.Direction, perStepCount(c.Count), figure(c.MB), c.GBps)
		}
	}
	if len(b.GPUs) > 1 {
		p("\nGPUs")
		for _, g := range b.GPUs {
			p("  %3d  busy %s, %s, %s, the widest %s ms", g.Device, percent(g.BusyShare), count1(g.Kernels, "kernel"), count1(g.Gaps, "gap"), figure(g.WidestMS))
		}
	}
	if len(b.GPUs) > 0 {
		p("\nQueue: %.1f pieces of work issued and unfinished at a launch on average; %s ms from issue to start (median)", b.QueueDepth, figure(b.QueueMS))
	}
	if n := len(b.Memory); n > 0 {
		low, high := b.Memory[0].MB, b.Memory[0].MB
		for _, m := range b.Memory {
			low, high = min(low, m.MB), max(high, m.MB)
		}
		p("Memory on the device: %s to %s MB allocated", fmt.Sprintf("%.0f", low), fmt.Sprintf("%.0f", high))
	}
}
