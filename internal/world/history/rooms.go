package history

import (
	"errors"
	"fmt"
	"slices"

	"haul/internal/world"
)

// Rooms is an open file of histories in a room, versions 1 and 2. Its transitions are the mapped
// file itself, so results of Stream must not be read after Close. Several goroutines may read it.
type Rooms struct {
	Header
	curves  [][]float64
	payload Steps
	release func() error
}

// parse parses and checks the bytes of a whole file. The result refers to data.
func parse(data []byte) (*Rooms, error) {
	p, err := readPreamble(data)
	if err != nil {
		return nil, err
	}
	payload, text := data[preambleBytes:preambleBytes+p.payload], data[preambleBytes+p.payload:]
	if checksum(text) != p.jsonSum {
		return nil, errors.New("bad checksum of the header: the file is damaged")
	}
	b, err := readBlock(text, p.payload)
	if err != nil {
		return nil, err
	}
	if want := formatOf(b.Room); p.format != want {
		return nil, fmt.Errorf("format version %d, a file of a %v has %d", p.format, b.Room, want)
	}
	h := &Rooms{Header: b.Header, curves: b.Curves, payload: payload, release: func() error { return nil }}
	r := newValidator(b.Room)
	for g := range b.Goals {
		data := h.goal(g)
		if checksum(data) != b.Checksums[g] {
			return nil, fmt.Errorf("bad checksum of goal %v: the file is damaged", b.Goals[g])
		}
		if err := r.validateGoal(&h.Header, g, data); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// goal returns the streams of a goal, in sequence.
func (h *Rooms) goal(goal int) Steps {
	n := h.Streams * h.Steps
	return h.payload.slice(goal*n, (goal+1)*n)
}

// Stream returns the transitions of one environment for the goal with this index, without copying.
func (h *Rooms) Stream(goal, stream int) Steps {
	if stream < 0 || stream >= h.Streams {
		panic("history: no such stream")
	}
	return h.goal(goal).slice(stream*h.Steps, (stream+1)*h.Steps)
}

// World returns the room.
func (h *Rooms) World() world.World { return h.Room }

// Tasks returns the goals, in the file's order.
func (h *Rooms) Tasks() []world.Task {
	out := make([]world.Task, len(h.Goals))
	for i, g := range h.Goals {
		out[i] = g
	}
	return out
}

// Size returns the number of streams per goal and of transitions per stream.
func (h *Rooms) Size() (streams, steps int) { return h.Streams, h.Steps }

// Curve returns the learner's mean return in each episode of the goal with this index.
func (h *Rooms) Curve(goal int) []float64 { return slices.Clone(h.curves[goal]) }

// Pack copies the first steps transitions of the first streams of each chosen goal, as words of
// Step.Word: transition t of stream s of choice g is element (g·streams+s)·steps+t.
func (h *Rooms) Pack(goals []int, streams, steps int) (*Data, error) {
	switch {
	case len(goals) == 0:
		return nil, errors.New("pack histories: no goals")
	case streams < 1 || streams > h.Streams:
		return nil, fmt.Errorf("pack histories: %d streams asked for, the file has %d", streams, h.Streams)
	case steps < 1 || steps > h.Steps:
		return nil, fmt.Errorf("pack histories: %d steps per stream asked for, the file has %d", steps, h.Steps)
	}
	out := make([]int32, 0, len(goals)*streams*steps)
	for _, g := range goals {
		if g < 0 || g >= len(h.Goals) {
			return nil, fmt.Errorf("pack histories: goal %d asked for, the file has %d", g, len(h.Goals))
		}
		for s := range streams {
			stream := h.Stream(g, s)
			for t := range steps {
				out = append(out, stream.At(t).Word())
			}
		}
	}
	return &Data{Words: out, Stride: 1}, nil
}

// Close unmaps the file.
func (h *Rooms) Close() error {
	release := h.release
	h.release = func() error { return nil }
	h.payload = nil
	return release()
}
