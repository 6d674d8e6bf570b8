// Package memory reads PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot) and reports
// what the GPU's memory holds when it is fullest, which line of Python asked for it, and what would
// free it. The package report calls it and prints the result.
package memory

import (
	"errors"
	"fmt"
	"math"

	"haul/internal/pickle"
)

// Snapshot is a memory snapshot: the allocator's state when it was dumped, and the events before.
type Snapshot struct {
	Devices []Device // GPUs with memory or events
}

// Device is one GPU of a snapshot. Sizes are bytes, addresses are the device's.
type Device struct {
	Index    int
	Segments []Segment // what the allocator had taken from the driver at the end
	Blocks   []Block   // what of it was in use at the end
	Events   []Event   // in the order in which they happened
	Recorded int       // number of events in the file, including those without effect
}

// Segment is memory taken from the driver.
type Segment struct {
	Address, Size uint64
	Expandable    bool
}

// Block is a part of a segment that was in use at the end.
type Block struct{ Address, Size uint64 }

// Event is one action of the allocator.
type Event struct {
	Action  Action
	Address uint64
	Size    uint64 // the bytes asked for; a block may be larger
	Number  int    // index among all events of the file
	Site    *Site  // who asked; nil if no stack was recorded
}

// Action is an action of the allocator.
type Action uint8

// The actions that change how much memory is in use or reserved.
const (
	Alloc        Action = iota
	Free                // the block can be used again
	SegmentAlloc        // memory was taken from the driver
	SegmentFree         // memory was returned to the driver
	OutOfMemory
)

// actions maps the names in the file. free_requested is left out: the block stays in use until
// free_completed.
var actions = map[string]Action{
	"alloc": Alloc, "free_completed": Free,
	"segment_alloc": SegmentAlloc, "segment_map": SegmentAlloc,
	"segment_free": SegmentFree, "segment_unmap": SegmentFree,
	"oom": OutOfMemory,
}

// ErrOther is returned for a pickle that is no memory snapshot.
var ErrOther = errors.New("this pickle is no memory snapshot: the doctor reads those of torch.cuda.memory._dump_snapshot, and traces of torch.profiler by export_chrome_trace")

// Read reads a snapshot from a pickle. Nothing in the pickle is executed.
func Read(data []byte) (*Snapshot, error) {
	v, err := pickle.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	top, ok := v.(*pickle.Dict)
	if !ok {
		return nil, ErrOther
	}
	segments, okSegments := list(top, "segments")
	traces, okTraces := list(top, "device_traces")
	if !okSegments || !okTraces {
		return nil, ErrOther
	}
	d := decoder{sites: map[*pickle.List]*Site{}, devices: map[int]*Device{}}
	for _, s := range segments {
		if err := d.segment(s); err != nil {
			return nil, err
		}
	}
	for i, t := range traces {
		events, ok := pickle.Items(t)
		if !ok {
			return nil, ErrOther
		}
		if err := d.events(i, events); err != nil {
			return nil, err
		}
	}
	s := &Snapshot{}
	for i := range len(traces) {
		if dev := d.devices[i]; dev != nil {
			s.Devices = append(s.Devices, *dev)
		}
	}
	if len(s.Devices) == 0 {
		return nil, errors.New("the snapshot holds no memory: call torch.cuda.memory._record_memory_history() before the work, and dump after it")
	}
	return s, nil
}

// decoder turns the pickle's values into a snapshot. Stacks are shared between events.
type decoder struct {
	sites   map[*pickle.List]*Site
	devices map[int]*Device
}

func (d *decoder) device(i int) *Device {
	if d.devices[i] == nil {
		d.devices[i] = &Device{Index: i}
	}
	return d.devices[i]
}

func (d *decoder) segment(v any) error {
	s, ok := v.(*pickle.Dict)
	if !ok {
		return ErrOther
	}
	index, okIndex := whole(s, "device")
	address, okAddress := whole(s, "address")
	size, okSize := whole(s, "total_size")
	blocks, okBlocks := list(s, "blocks")
	if !okIndex || !okAddress || !okSize || !okBlocks || index > math.MaxInt32 || address+size < address {
		return errors.New("the snapshot is damaged: a segment without device, address, total_size or blocks")
	}
	expandable, _ := s.Get("is_expandable")
	dev := d.device(int(index))
	dev.Segments = append(dev.Segments, Segment{address, size, expandable == true})
	for _, v := range blocks {
		b, ok := v.(*pickle.Dict)
		if !ok {
			return ErrOther
		}
		width, okWidth := whole(b, "size")
		if !okWidth || width > size {
			return errors.New("the snapshot is damaged: a block without a size, or larger than its segment")
		}
		at, ok := whole(b, "address")
		if !ok {
			at = address // before PyTorch 2.1 blocks have no address and are contiguous
		}
		address += width
		switch state, _ := b.Get("state"); state {
		case "active_allocated", "active_pending_free", "active_awaiting_free":
			dev.Blocks = append(dev.Blocks, Block{at, width})
		}
	}
	return nil
}

func (d *decoder) events(device int, list []any) error {
	for i, v := range list {
		e, ok := v.(*pickle.Dict)
		if !ok {
			return ErrOther
		}
		name, _ := e.Get("action")
		text, _ := name.(string)
		action, ok := actions[text]
		if !ok {
			continue
		}
		size, okSize := whole(e, "size")
		address, okAddress := whole(e, "addr")
		if !okSize || !okAddress && action != OutOfMemory {
			return errors.New("the snapshot is damaged: an event without addr or size")
		}
		dev := d.device(device)
		dev.Recorded = len(list)
		dev.Events = append(dev.Events, Event{action, address, size, i, d.site(e)})
	}
	return nil
}

// site returns who asked for the memory of an event; events with one stack share one Site.
func (d *decoder) site(e *pickle.Dict) *Site {
	v, _ := e.Get("frames")
	frames, ok := v.(*pickle.List)
	if !ok || len(frames.Items) == 0 {
		return nil
	}
	if s, ok := d.sites[frames]; ok {
		return s
	}
	s := siteOf(frames.Items)
	d.sites[frames] = s
	return s
}

func list(d *pickle.Dict, key string) ([]any, bool) {
	v, _ := d.Get(key)
	return pickle.Items(v)
}

// whole returns a key's integer; false if it is missing, negative or no integer.
func whole(d *pickle.Dict, key string) (uint64, bool) {
	v, _ := d.Get(key)
	n, ok := v.(int64)
	return uint64(n), ok && n >= 0
}
