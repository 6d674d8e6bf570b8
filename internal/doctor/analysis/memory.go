package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"haul/internal/doctor/trace"
)

// Memory over time is recorded by the framework's allocator with profile_memory: each allocation
// and release, with its address. Replaying them gives the holders: an allocation belongs to the
// outermost operator on its thread at that time, until its address is freed. The rest of the total
// was allocated before the recording began.

// MemoryLevel is a point of the memory's timeline.
type MemoryLevel struct {
	MS float64 `json:"ms"` // since the first step
	MB float64 `json:"mb"`
}

// MemoryPeak is the time at which most memory is allocated, and the holders of the memory.
type MemoryPeak struct {
	Device   string         `json:"device"` // "GPU 0", or "host"
	MS       float64        `json:"ms"`     // since the first step
	MB       float64        `json:"mb"`
	BeforeMB float64        `json:"before_mb"`          // the part allocated before the recording
	GrowsMB  float64        `json:"grows_mb,omitempty"` // per step, if the memory at the end grows in every step
	Holders  []MemoryHolder `json:"holders"`
}

// MemoryHolder sums the memory that operators of one name allocated and that is not freed.
type MemoryHolder struct {
	What   string  `json:"what"`
	Phase  string  `json:"phase"` // forward, backward or optimizer
	MB     float64 `json:"mb"`
	Pieces int     `json:"pieces"`
	Where  string  `json:"where,omitempty"` // in the code, if Python's frames were recorded
}

const (
	// memoryPoints limits the points of a report's timeline.
	memoryPoints = 400
	shownHolders = 8
	// growing is the fraction of the peak by which memory must grow in every step.
	growing = 0.001
)

// pool is one allocator's memory.
type pool struct {
	host   bool
	device uint16
}

// memory returns the timeline of the device with the largest peak, or of the host without a GPU,
// and its peak inside the steps.
func (a *Analysis) memory() ([]MemoryLevel, *MemoryPeak) {
	tops := map[pool]int64{}
	for i := range a.Memory.Len() {
		m := a.Memory.At(i)
		p := pool{m.Host, m.Device}
		if m.Host {
			p.device = 0
		}
		tops[p] = max(tops[p], m.Total)
	}
	if len(tops) == 0 {
		return nil, nil
	}
	var best pool
	found := false
	for p, top := range tops {
		// a GPU's memory before the host's, then the larger peak, then the first device
		if !found || cmp.Or(boolOrder(best.host, p.host), cmp.Compare(top, tops[best]), cmp.Compare(best.device, p.device)) > 0 {
			best, found = p, true
		}
	}
	var list []*trace.Alloc
	for i := range a.Memory.Len() {
		if m := a.Memory.At(i); m.Host == best.host && (m.Host || m.Device == best.device) {
			list = append(list, m)
		}
	}
	return a.levels(list), a.peak(list, best)
}

// boolOrder returns a positive number if x is true and y is false.
func boolOrder(x, y bool) int {
	switch {
	case x && !y:
		return 1
	case y && !x:
		return -1
	}
	return 0
}

func (a *Analysis) levels(list []*trace.Alloc) []MemoryLevel {
	every := (len(list) + memoryPoints - 1) / memoryPoints
	var out []MemoryLevel
	for i := 0; i < len(list); i += every {
		top := list[i]
		for _, l := range list[i:min(i+every, len(list))] {
			if l.Total > top.Total {
				top = l
			}
		}
		out = append(out, MemoryLevel{float64(top.At-a.CPUSteps[0].Start) / 1e6, float64(top.Total) / (1 << 20)})
	}
	return out
}

// peak replays allocations and releases up to the time of the peak.
func (a *Analysis) peak(list []*trace.Alloc, p pool) *MemoryPeak {
	at := -1
	for i, m := range list {
		if _, ok := trace.Within(a.CPUSteps, m.At); ok && (at < 0 || m.Total > list[at].Total) {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	live := map[uint64]*trace.Alloc{}
	for _, m := range list[:at+1] {
		switch {
		case m.Addr == 0:
		case m.Bytes > 0:
			live[m.Addr] = m
		default:
			delete(live, m.Addr)
		}
	}
	type key struct {
		name  uint32
		phase string
	}
	by := map[key]*MemoryHolder{}
	places := map[key][]Place{}
	var known int64
	for _, m := range live {
		th := a.Threads[m.Thread]
		k := key{phase: a.phase(th, m.At)}
		s := trace.Span{Start: m.At, End: m.At + 1}
		if o := OpAt(th, m.At); o != nil {
			k.name = o.Name
			s = trace.Span{Start: o.Start, End: o.End()}
		}
		h := by[k]
		if h == nil {
			h = &MemoryHolder{What: "Python, outside any operator", Phase: k.phase}
			if k.name != 0 {
				h.What = trace.ShortName(a.Names.List[k.name].Text)
			}
			by[k] = h
		}
		h.MB += float64(m.Bytes) / (1 << 20)
		h.Pieces++
		known += m.Bytes
		places[k] = append(places[k], Place{s, th})
	}
	top := list[at]
	out := &MemoryPeak{Device: poolName(p), MS: float64(top.At-a.CPUSteps[0].Start) / 1e6, MB: float64(top.Total) / (1 << 20),
		BeforeMB: float64(max(0, top.Total-known)) / (1 << 20), GrowsMB: a.growth(list), Holders: []MemoryHolder{}}
	keys := make([]key, 0, len(by))
	for k := range by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y key) int {
		return cmp.Or(cmp.Compare(by[y].MB, by[x].MB), cmp.Compare(by[x].What, by[y].What), cmp.Compare(x.phase, y.phase))
	})
	for _, k := range keys[:min(len(keys), shownHolders)] {
		by[k].Where = a.Where(places[k])
		out.Holders = append(out.Holders, *by[k])
	}
	return out
}

func poolName(p pool) string {
	if p.host {
		return "host"
	}
	return fmt.Sprintf("GPU %d", p.device)
}

// phase returns the part of a step that a time on a thread belongs to.
func (a *Analysis) phase(th *trace.Thread, at int64) string { return a.phaseOf(OpAt(th, at), at) }

// phaseOf returns the part of a step that an operator, or none, belongs to at a time.
func (a *Analysis) phaseOf(o *trace.Op, at int64) string {
	if o != nil && trace.IsBackward(a.Names.List[o.Name].Text) {
		return "backward"
	}
	if trace.Covered(a.Updates, trace.Span{Start: at, End: at + 1}) > 0 {
		return "optimizer"
	}
	return "forward"
}

// growth returns the mean growth in MB from one step's end to the next, if memory grows over all of
// at least three steps: a leak.
func (a *Analysis) growth(list []*trace.Alloc) float64 {
	var ends []int64
	top, i := int64(0), 0
	for _, w := range a.CPUSteps {
		var last int64
		for ; i < len(list) && list[i].At < w.End; i++ {
			last = list[i].Total
			top = max(top, last)
		}
		ends = append(ends, last)
	}
	if len(ends) < 3 {
		return 0
	}
	for k := 1; k < len(ends); k++ {
		if float64(ends[k]-ends[k-1]) < growing*float64(top) {
			return 0
		}
	}
	return float64(ends[len(ends)-1]-ends[0]) / float64(len(ends)-1) / (1 << 20)
}
