package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const mebi = 1 << 20

var (
	forward   = &Site{Place: "model.py:10 forward", Phase: Forward}
	loss      = &Site{Place: "train.py:5 loss", Phase: Forward, Loss: true}
	backward  = &Site{Place: "autograd MmBackward0", Phase: Backward}
	lossBack  = &Site{Place: "autograd LogSoftmaxBackward0", Phase: Backward, Loss: true}
	optimizer = &Site{Place: "optim.py:7 step", Phase: Optimizer}
	workspace = &Site{Place: Workspace.String(), Phase: Backward, Workspace: true}
)

// recording builds a device's events; every block has a separate segment of its size.
type recording struct {
	Device
	next uint64
	open map[string]Event
}

func record() *recording { return &recording{next: 1 << 30, open: map[string]Event{}} }

func (r *recording) add(a Action, address, size uint64, s *Site) {
	r.Events = append(r.Events, Event{Action: a, Address: address, Size: size, Number: len(r.Events), Site: s})
	r.Recorded = len(r.Events)
}

// take allocates that many MiB under a name.
func (r *recording) take(name string, mib float64, s *Site) {
	size := uint64(mib * mebi)
	r.Segments = append(r.Segments, Segment{Address: r.next, Size: size})
	r.open[name] = Event{Address: r.next, Size: size}
	r.add(Alloc, r.next, size, s)
	r.next += 1 << 30
}

// before is take, before the recording began.
func (r *recording) before(name string, mib float64) {
	events := r.Events
	r.take(name, mib, nil)
	r.Events, r.Recorded = events, len(events)
}

func (r *recording) release(names ...string) {
	for _, name := range names {
		e := r.open[name]
		r.add(Free, e.Address, e.Size, nil)
		delete(r.open, name)
	}
}

func (r *recording) report() *Report {
	d := r.Device
	for _, e := range r.open {
		d.Blocks = append(d.Blocks, Block{e.Address, e.Size})
	}
	return analyse(&d)
}

// A step of training by hand: what it holds at its peak, and what each block is for.
func TestPeakOfAStep(t *testing.T) {
	r := record()
	r.before("parameters", 100)
	r.take("saved", 60, forward)
	r.take("scratch", 10, forward)
	r.release("scratch")
	r.take("workspace", 8, workspace)
	r.take("gradient", 100, backward)
	r.take("temporary", 5, backward)
	r.release("temporary", "saved")
	r.take("moment", 200, optimizer)
	r.take("update", 25, optimizer)
	r.release("update")
	r.take("next", 1, forward)
	r.release("next", "gradient")
	rep := r.report()
	if rep.Peak != 433 || rep.PeakPhase != "the optimizer's step" || rep.Start != 100 || rep.End != 308 {
		t.Errorf("peak %v in %s, from %v to %v", rep.Peak, rep.PeakPhase, rep.Start, rep.End)
	}
	want := []Holding{{Before.String(), 100, 1}, {Gradient.String(), 100, 1}, {State.String(), 200, 1}, {Temporary.String(), 25, 1}, {Workspace.String(), 8, 1}}
	if !slices.Equal(rep.Kinds, want) {
		t.Errorf("the peak holds %v, want %v", rep.Kinds, want)
	}
	if first := rep.Places[0]; first != (Holding{optimizer.Place, 225, 2}) {
		t.Errorf("the first place is %v", first)
	}
	if got := r.report().r.peakIf(func(u *Usage) float64 { return 0 }); got != 0 {
		t.Errorf("nothing kept leaves %v", got)
	}
}

// A block is as large as its request, in steps of 512 bytes, or as the free piece it was cut from
// where the rest would be too small.
func TestBlockSizes(t *testing.T) {
	for _, c := range []struct{ segment, request, want uint64 }{
		{20 * mebi, 19*mebi - 512, 19*mebi - 512}, // the rest is more than 1 MiB
		{20 * mebi, 19 * mebi, 20 * mebi},         // just 1 MiB
		{20 * mebi, 19*mebi + 1, 20 * mebi},
		{2 * mebi, 2*mebi - 512, 2*mebi - 512}, // small blocks: 512 bytes are split off
		{2 * mebi, 2*mebi - 511, 2 * mebi},
		{20 * mebi, 1, 512},
		{20 * mebi, 513, 1024},
	} {
		d := Device{Segments: []Segment{{Address: 1 << 30, Size: c.segment}}, Events: []Event{
			{Action: Alloc, Address: 1 << 30, Size: c.request, Site: forward}, {Action: Free, Address: 1 << 30, Size: c.request},
		}, Recorded: 2}
		if got := replay(&d).allocated[0]; got != c.want {
			t.Errorf("a request of %d in a segment of %d takes %d, want %d", c.request, c.segment, got, c.want)
		}
	}
	// a neighbour in use ends the free piece
	d := Device{Segments: []Segment{{Address: 1 << 30, Size: 20 * mebi}}, Blocks: []Block{{1<<30 + 10*mebi, 10 * mebi}}, Events: []Event{
		{Action: Alloc, Address: 1 << 30, Size: 10*mebi - 512, Site: forward}, {Action: Free, Address: 1 << 30, Size: 10*mebi - 512},
	}, Recorded: 2}
	if got := replay(&d).allocated[0]; got != 20*mebi {
		t.Errorf("between neighbours %d bytes are in use, want %d", got, 20*mebi)
	}
}

// Reserved memory sums the segments of that moment; the first of equal peaks is reported.
func TestReservedAtThePeak(t *testing.T) {
	r := record()
	r.take("first", 50, forward)
	r.add(SegmentAlloc, 1<<20, 30*mebi, nil)
	r.release("first")
	r.add(SegmentFree, 1<<20, 30*mebi, nil)
	r.take("second", 50, forward)
	rep := r.report()
	if rep.PeakEvent != 0 || rep.Reserved != 100 || rep.EndReserved != 100 {
		t.Errorf("the peak is at event %d with %v MiB reserved, %v at the end", rep.PeakEvent, rep.Reserved, rep.EndReserved)
	}
	if at := rep.r.reserved; mib(float64(at[1])) != 130 || mib(float64(at[3])) != 100 {
		t.Errorf("reserved after each event: %v", at)
	}
}

// Each finding in a recording that has its cause, with what it saves by hand, and none without.
func TestFindings(t *testing.T) {
	layers := func(r *recording, n int, mib float64, s *Site) (names []string) {
		for i := range n {
			name := fmt.Sprint(s.Place, i)
			r.take(name, mib, s)
			names = append(names, name)
		}
		return names
	}
	for _, c := range []struct {
		name  string
		make  func(r *recording)
		first string
		saves float64
	}{
		{"nothing", func(r *recording) { r.take("logits", 100, forward) }, "", 0},
		{"parameters and their state", func(r *recording) {
			r.before("parameters", 300)
			r.take("gradient", 100, backward)
			r.take("moment", 50, optimizer)
			r.take("logits", 1, forward)
			r.release("logits")
		}, "bytes-per-parameter", 225},
		{"a forward pass that keeps its graph", func(r *recording) {
			r.before("parameters", 100)
			layers(r, 8, 20, forward)
		}, "graph-kept", 160},
		{"seven blocks kept", func(r *recording) { layers(r, 7, 20, forward) }, "", 0},
		{"activations before a backward pass", func(r *recording) {
			kept := layers(r, 8, 20, forward)
			r.take("gradient", 10, backward)
			r.release(kept...)
			r.take("end", 1, forward)
			r.release("end")
		}, "activations", 159},
		{"a loss with buffers as large as the logits", func(r *recording) {
			r.take("logits", 100, forward)
			r.take("softmax", 100, loss)
			r.take("gradient", 100, lossBack)
			r.release("softmax", "logits")
		}, "loss-buffers", 200},
		{"one buffer of a loss", func(r *recording) {
			r.take("logits", 100, forward)
			r.take("softmax", 100, loss)
			r.release("softmax")
		}, "", 0},
		{"a result held over the next pass", func(r *recording) {
			for i, name := range []string{"a", "b", "c"} {
				for range 9 {
					r.take("work", 1, forward)
					r.release("work")
				}
				r.take(name, 100, forward)
				if i > 0 {
					r.release([]string{"a", "b"}[i-1])
				}
			}
			r.release("c")
		}, "result-held", 100},
		{"temporaries of the optimizer", func(r *recording) {
			r.take("kept", 100, forward)
			r.take("scratch", 50, optimizer)
			r.release("scratch")
			r.take("end", 1, forward)
		}, "optimizer-temporaries", 49},
		{"free segments that nothing fits into", func(r *recording) {
			r.take("kept", 100, forward)
			r.Segments = append(r.Segments, Segment{Address: 1 << 20, Size: 40 * mebi})
		}, "fragmentation", 40},
		{"refused by the driver", func(r *recording) {
			r.take("kept", 100, forward)
			for range 2 {
				r.add(SegmentFree, 1<<20, mebi, nil)
				r.add(SegmentAlloc, 1<<20, mebi, nil)
			}
			r.Segments = append(r.Segments, Segment{Address: 1 << 20, Size: mebi})
		}, "out-of-memory", 0},
	} {
		r := record()
		c.make(r)
		rep := r.report()
		first, saves := "", 0.0
		if len(rep.Findings) > 0 {
			first, saves = rep.Findings[0].ID, rep.Findings[0].Saves
		}
		if first != c.first || math.Abs(saves-c.saves) > 1e-9 {
			t.Errorf("%s: %q saves %v, want %q %v; all: %+v", c.name, first, saves, c.first, c.saves, rep.Findings)
		}
	}
}

// What is wasted comes before a choice unless the choice frees more than twice as much.
func TestWasteBeforeChoice(t *testing.T) {
	for _, c := range []struct {
		parameters float64
		first      string
	}{{639, "graph-kept"}, {641, "bytes-per-parameter"}} {
		r := record()
		r.before("parameters", c.parameters)
		for i := range 8 {
			r.take(fmt.Sprint(i), 20, forward)
		}
		if got := r.report().Findings[0].ID; got != c.first {
			t.Errorf("%v MiB of parameters beside 160 MiB kept: %s comes first, want %s", c.parameters, got, c.first)
		}
	}
}

// For any recording: no finding saves more than there is, the kinds and places at the peak add up,
// the picture's bands end at the peak, and the end equals the snapshot's blocks.
func TestAnyRecordingAddsUp(t *testing.T) {
	sites := []*Site{nil, forward, loss, backward, lossBack, optimizer, workspace}
	rapid.Check(t, func(t *rapid.T) {
		r := record()
		for i := range rapid.IntRange(0, 3).Draw(t, "before") {
			r.before(fmt.Sprint("before", i), float64(rapid.IntRange(1, 50).Draw(t, "size")))
		}
		for i := range rapid.IntRange(0, 60).Draw(t, "events") {
			if len(r.open) > 0 && rapid.Bool().Draw(t, "release") {
				names := make([]string, 0, len(r.open))
				for name := range r.open {
					names = append(names, name)
				}
				slices.Sort(names)
				r.release(rapid.SampledFrom(names).Draw(t, "name"))
				continue
			}
			r.take(fmt.Sprint(i), float64(rapid.IntRange(1, 50).Draw(t, "size")), rapid.SampledFrom(sites).Draw(t, "site"))
		}
		end := 0.0
		for _, e := range r.open {
			end += mib(float64(e.Size))
		}
		rep := r.report()
		if math.Abs(rep.End-end) > 1e-9 {
			t.Fatalf("the end holds %v, want %v", rep.End, end)
		}
		sum := 0.0
		for _, h := range rep.Kinds {
			sum += h.MiB
		}
		if math.Abs(sum-rep.Peak) > 1e-9 {
			t.Fatalf("the kinds hold %v of a peak of %v", sum, rep.Peak)
		}
		for _, f := range rep.Findings {
			if limit := max(rep.Peak, rep.Unused()); f.Saves < 0 || f.Saves > limit+1e-9 {
				t.Fatalf("%s saves %v of %v", f.ID, f.Saves, limit)
			}
		}
		if bands := rep.Picture(); rep.PeakEvent >= 0 && rep.Peak > rep.Start {
			if top := bands[len(bands)-1]; !strings.Contains(top.Points, ",0.0 ") && !strings.HasSuffix(top.Points, ",0.0") {
				t.Fatalf("no band reaches the peak: %v", top)
			}
		}
	})
}

func TestCompare(t *testing.T) {
	before, after := record(), record()
	before.take("logits", 100, forward)
	before.take("softmax", 100, loss)
	after.take("logits", 100, forward)
	after.take("gradient", 30, backward)
	d := Compare(before.report(), after.report())
	if d.Peak != -70 || d.SameWork || d.Why != "only the second recording holds the backward pass" {
		t.Errorf("%+v", d)
	}
	if want := []Change{{loss.Place, 100, 0}, {backward.Place, 0, 30}}; !slices.Equal(d.Places, want) {
		t.Errorf("places: %v, want %v", d.Places, want)
	}
	if same := Compare(before.report(), before.report()); same.Peak != 0 || !same.SameWork || len(same.Kinds) != 0 || !strings.Contains(same.Verdict(), "as high as before") {
		t.Errorf("%+v", same)
	}
}
