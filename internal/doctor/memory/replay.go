package memory

import (
	"slices"
	"sort"
)

// Usage is one block's life. Events are counted from 0; a block in use before the
// first event was allocated at -1, a block in use at the end is freed at the number of events.
type Usage struct {
	Address, Size   uint64
	From, To        int // events of its allocation and release
	Site            *Site
	Kind            Kind
	segmentEnd      uint64
	splitsFromAbove uint64 // a remainder larger than this becomes a block
}

// replayed is a device's memory over the events of a recording.
type replayed struct {
	*Device
	uses      []Usage
	allocated []uint64 // after each event
	reserved  []uint64
	start     uint64 // allocated before the first event
}

// What PyTorch's allocator adds to a request (c10/cuda/CUDACachingAllocator.cpp): sizes are whole
// multiples of 512 bytes; what is left of a free block is split off if it has 512 bytes in the pool
// of small blocks (segments of 2 MiB) or where segments expand, and more than 1 MiB elsewhere.
const (
	smallestBlock = 512
	smallSegment  = 2 << 20
	largestRest   = 1 << 20
)

// replay follows the events. Block sizes at the end are recorded; those of blocks freed earlier
// follow from the request and from the neighbour that was in use when they were allocated.
func replay(d *Device) *replayed {
	r := &replayed{Device: d}
	segments := segmentsEver(d)
	open := map[uint64]int{} // uses by address
	for i, e := range d.Events {
		switch e.Action {
		case Alloc:
			if old, ok := open[e.Address]; ok {
				r.uses[old].To = i // the events between were lost
			}
			open[e.Address] = len(r.uses)
			r.uses = append(r.uses, Usage{Address: e.Address, Size: e.Size, From: i, To: len(d.Events), Site: e.Site})
		case Free:
			if k, ok := open[e.Address]; ok {
				r.uses[k].To = i
				delete(open, e.Address)
			} else {
				r.uses = append(r.uses, Usage{Address: e.Address, Size: e.Size, From: -1, To: i})
			}
		}
	}
	sized := map[int]bool{}
	for _, b := range d.Blocks {
		if k, ok := open[b.Address]; ok {
			r.uses[k].Size, sized[k] = b.Size, true
		} else {
			r.uses = append(r.uses, Usage{Address: b.Address, Size: b.Size, From: -1, To: len(d.Events)})
			sized[len(r.uses)-1] = true
		}
	}
	for k := range r.uses {
		if !sized[k] {
			r.uses[k].bound(segments)
		}
	}
	r.size(sized)
	r.sum()
	return r
}

// segmentsEver lists all segments of a recording by address, the released ones included.
func segmentsEver(d *Device) []Segment {
	out := slices.Clone(d.Segments)
	for _, e := range d.Events {
		if e.Action == SegmentAlloc || e.Action == SegmentFree {
			out = append(out, Segment{Address: e.Address, Size: e.Size})
		}
	}
	slices.SortStableFunc(out, func(x, y Segment) int {
		if x.Address != y.Address {
			return map[bool]int{true: -1, false: 1}[x.Address < y.Address]
		}
		return 0
	})
	return out
}

// bound sets where the block's segment ends and which remainder would have been split off.
func (u *Usage) bound(segments []Segment) {
	i := sort.Search(len(segments), func(i int) bool { return segments[i].Address > u.Address })
	for i--; i >= 0 && u.Address-segments[i].Address <= 1<<40; i-- {
		s := segments[i]
		if end := s.Address + s.Size; end >= u.Address+u.Size {
			u.segmentEnd, u.splitsFromAbove = end, largestRest
			if s.Size <= smallSegment || s.Expandable {
				u.splitsFromAbove = smallestBlock - 1
			}
			return
		}
	}
}

// size replaces requests by the sizes of blocks, in the order of their allocation.
func (r *replayed) size(sized map[int]bool) {
	order := make([]int, len(r.uses))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return r.uses[x].From - r.uses[y].From })
	var live []uint64 // addresses in use, sorted
	ends := map[int][]uint64{}
	event := -1
	drop := func(to int) {
		for ; event < to; event++ {
			for _, address := range ends[event] {
				if i, ok := slices.BinarySearch(live, address); ok {
					live = slices.Delete(live, i, i+1)
				}
			}
			delete(ends, event)
		}
	}
	for _, k := range order {
		u := &r.uses[k]
		drop(u.From)
		i, _ := slices.BinarySearch(live, u.Address)
		if !sized[k] {
			u.Size = (u.Size + smallestBlock - 1) / smallestBlock * smallestBlock
			end := u.segmentEnd
			if i < len(live) && live[i] < end {
				end = live[i]
			}
			if full := end - u.Address; end > u.Address && full > u.Size && full-u.Size <= u.splitsFromAbove {
				u.Size = full
			}
		}
		live = slices.Insert(live, i, u.Address)
		ends[u.To] = append(ends[u.To], u.Address)
	}
}

// sum adds up what is allocated and reserved after each event.
func (r *replayed) sum() {
	n := len(r.Events)
	change := make([]int64, n+1)
	for _, u := range r.uses {
		if u.From < 0 {
			r.start += u.Size
		} else {
			change[u.From] += int64(u.Size)
		}
		change[u.To] -= int64(u.Size)
	}
	reserved := int64(0)
	for _, s := range r.Segments {
		reserved += int64(s.Size)
	}
	r.reserved = make([]uint64, n)
	for i := n - 1; i >= 0; i-- {
		r.reserved[i] = uint64(max(0, reserved))
		switch e := r.Events[i]; e.Action {
		case SegmentAlloc:
			reserved -= int64(e.Size)
		case SegmentFree:
			reserved += int64(e.Size)
		}
	}
	r.allocated = make([]uint64, n)
	at := int64(r.start)
	for i := range n {
		at += change[i]
		r.allocated[i] = uint64(at)
	}
}

// peak returns the first event after which most is allocated, and the bytes. The event is -1 if
// memory never passes its level before the first event.
func (r *replayed) peak() (event int, bytes uint64) {
	event, bytes = -1, r.start
	for i, b := range r.allocated {
		if b > bytes {
			event, bytes = i, b
		}
	}
	return event, bytes
}

// peakIf returns the most that would be allocated if each block had the size that keep returns.
func (r *replayed) peakIf(keep func(u *Usage) float64) float64 {
	change := make([]float64, len(r.Events)+1)
	at := 0.0
	for i := range r.uses {
		u := &r.uses[i]
		size := keep(u)
		if u.From < 0 {
			at += size
		} else {
			change[u.From] += size
		}
		change[u.To] -= size
	}
	most := at
	for _, c := range change[:len(r.Events)] {
		at += c
		most = max(most, at)
	}
	return most
}

// inUse reports whether a block is in use after an event.
func (u *Usage) inUse(event int) bool { return u.From <= event && u.To > event }
