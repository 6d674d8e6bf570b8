package memory

import (
	"fmt"
	"slices"

	"haul/internal/doctor/phrase"
)

// Report describes the memory of one GPU. Sizes are MiB, as in PyTorch's viewer.
type Report struct {
	Device      int       `json:"device"`
	Peak        float64   `json:"peak_mib"`     // the most that was allocated at one time
	Reserved    float64   `json:"reserved_mib"` // taken from the driver at that time
	PeakEvent   int       `json:"peak_event"`   // -1: before the first event
	Events      int       `json:"events"`
	PeakPhase   string    `json:"peak_phase,omitempty"`
	Start       float64   `json:"start_mib"`
	End         float64   `json:"end_mib"`
	EndReserved float64   `json:"end_reserved_mib"`
	Kinds       []Holding `json:"kinds"`  // at the peak
	Places      []Holding `json:"places"` // at the peak, who asked
	FreeBlock   float64   `json:"largest_free_mib"`
	FreeWhole   float64   `json:"whole_free_segments_mib"` // segments without a block in use
	Retries     int       `json:"cudamalloc_retries"`
	OutOfMemory int       `json:"out_of_memory"`
	Findings    []Finding `json:"findings"`

	r *replayed
}

// Finding is one way to need less memory.
type Finding struct {
	ID       string   `json:"id"`
	Saves    float64  `json:"saves_mib"` // by which the peak falls, or the reserved memory
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`

	Choice bool    `json:"-"` // it changes results, or costs something else: a choice, not a fault
	weight float64 // orders findings
}

// Analyse reports on every GPU of a snapshot.
func Analyse(s *Snapshot) []*Report {
	var out []*Report
	for i := range s.Devices {
		out = append(out, analyse(&s.Devices[i]))
	}
	return out
}

func analyse(d *Device) *Report {
	r := replay(d)
	r.classify()
	event, bytes := r.peak()
	rep := &Report{Device: d.Index, Peak: mib(float64(bytes)), PeakEvent: event, Events: d.Recorded,
		Start: mib(float64(r.start)), End: mib(float64(r.start)), Findings: []Finding{}, r: r}
	for _, s := range d.Segments {
		rep.EndReserved += mib(float64(s.Size))
	}
	rep.Reserved = rep.EndReserved
	if n := len(r.allocated); n > 0 {
		rep.End = mib(float64(r.allocated[n-1]))
		rep.Reserved = mib(float64(r.reserved[max(event, 0)]))
	}
	if event >= 0 {
		rep.PeakEvent, rep.PeakPhase = d.Events[event].Number, Forward.String()
		if s := d.Events[event].Site; s != nil {
			rep.PeakPhase = s.Phase.String()
		}
	}
	rep.Kinds, rep.Places = r.holdings(event)
	rep.free(event)
	for i, e := range d.Events {
		switch {
		case e.Action == OutOfMemory:
			rep.OutOfMemory++
		case e.Action == SegmentAlloc && i > 0 && d.Events[i-1].Action == SegmentFree:
			rep.Retries++ // cudaMalloc failed, the cache was emptied, and it was tried again
		}
	}
	rep.Findings = advise(rep)
	return rep
}

// free measures what is reserved and not allocated at the peak.
func (rep *Report) free(event int) {
	segments := rep.r.segmentsAt(event)
	var used []Usage
	for _, u := range rep.r.uses {
		if u.inUse(event) {
			used = append(used, u)
		}
	}
	slices.SortFunc(used, func(x, y Usage) int {
		if x.Address < y.Address {
			return -1
		}
		return 1
	})
	k := 0
	for _, s := range segments {
		at, end := s.Address, s.Address+s.Size
		for k < len(used) && used[k].Address < at {
			k++
		}
		first := k
		for ; k < len(used) && used[k].Address < end; k++ {
			if used[k].Address > at {
				rep.FreeBlock = max(rep.FreeBlock, mib(float64(used[k].Address-at)))
			}
			at = used[k].Address + used[k].Size
		}
		if at < end {
			rep.FreeBlock = max(rep.FreeBlock, mib(float64(end-at)))
		}
		if k == first {
			rep.FreeWhole += mib(float64(s.Size))
		}
	}
}

// segmentsAt lists the segments that were reserved after an event, by address.
func (r *replayed) segmentsAt(event int) []Segment {
	here := map[uint64]Segment{}
	for _, s := range r.Segments {
		here[s.Address] = s
	}
	for i := len(r.Events) - 1; i > event; i-- {
		switch e := r.Events[i]; e.Action {
		case SegmentAlloc:
			delete(here, e.Address)
		case SegmentFree:
			here[e.Address] = Segment{Address: e.Address, Size: e.Size}
		}
	}
	out := make([]Segment, 0, len(here))
	for _, s := range here {
		out = append(out, s)
	}
	slices.SortFunc(out, func(x, y Segment) int {
		if x.Address < y.Address {
			return -1
		}
		return 1
	})
	return out
}

// Unused returns the memory reserved and not allocated at the peak.
func (rep *Report) Unused() float64 { return rep.Reserved - rep.Peak }

// kind returns what blocks of one kind hold at the peak.
func (rep *Report) kind(k Kind) Holding {
	for _, h := range rep.Kinds {
		if h.Name == k.String() {
			return h
		}
	}
	return Holding{}
}

// Verdict is the report in one sentence.
func (rep *Report) Verdict() string {
	if len(rep.Findings) == 0 {
		return "Nothing stands out: no known change would free a twentieth of the peak."
	}
	s := "What would free memory, most first: "
	for i, f := range rep.Findings {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s (%s MiB)", f.ID, Size(f.Saves))
	}
	return s + "."
}

// Size writes MiB with one decimal and the thousands apart.
func Size(mib float64) string {
	tenths := int(mib*10 + 0.5)
	return fmt.Sprintf("%s.%d", phrase.Thousands(tenths/10), tenths%10)
}
