package world

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// History is an open file of learning histories. Its transitions are the mapped file itself:
// nothing that Stream returned may be read after Close. It may be read from many goroutines.
type History struct {
	Header
	curves  [][]float64
	payload Steps
	release func() error
}

// Open maps a file and judges all of it: sizes, checksums, and every transition by the rules of its
// room.
func Open(path string) (*History, error) {
	data, release, err := openMapped(path)
	if err != nil {
		return nil, fmt.Errorf("history %s: %w", path, bare(err))
	}
	h, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("history %s: %w", path, errors.Join(err, release()))
	}
	h.release = release
	return h, nil
}

func openMapped(path string) ([]byte, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := info.Size()
	switch {
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("not a regular file")
	case size == 0:
		return nil, nil, errors.New("the file is empty")
	case int64(int(size)) != size:
		return nil, nil, fmt.Errorf("%d bytes are more than this machine can address", size)
	}
	return mapFile(f, int(size))
}

// parse judges the bytes of a whole file, which the history goes on to use.
func parse(data []byte) (*History, error) {
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
	if want := b.Room.format(); p.format != want {
		return nil, fmt.Errorf("format version %d, a file of a %v has %d", p.format, b.Room, want)
	}
	h := &History{Header: b.Header, curves: b.Curves, payload: payload, release: func() error { return nil }}
	r := newReferee(b.Room)
	for g := range b.Goals {
		data := h.goal(g)
		if checksum(data) != b.Checksums[g] {
			return nil, fmt.Errorf("bad checksum of goal %v: the file is damaged", b.Goals[g])
		}
		if err := r.judgeGoal(&h.Header, g, data); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// goal returns the streams of a goal, one after another.
func (h *History) goal(goal int) Steps {
	n := h.Streams * h.Steps
	return h.payload.slice(goal*n, (goal+1)*n)
}

// Stream returns one environment's transitions of the goal at that index, without copying.
func (h *History) Stream(goal, stream int) Steps {
	if stream < 0 || stream >= h.Streams {
		panic("darkroom: no such stream")
	}
	return h.goal(goal).slice(stream*h.Steps, (stream+1)*h.Steps)
}

// Curve is the learner's mean return in each episode of the goal at that index.
func (h *History) Curve(goal int) []float64 { return slices.Clone(h.curves[goal]) }

// Pack copies the first steps transitions of the first streams of each chosen goal, as Step.Word
// writes them: transition t of stream s of the g-th choice is element (g·streams+s)·steps+t.
func (h *History) Pack(goals []int, streams, steps int) ([]int32, error) {
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
	return out, nil
}

// Close unmaps the file.
func (h *History) Close() error {
	release := h.release
	h.release = func() error { return nil }
	h.payload = nil
	return release()
}
