package history

// A file of version 3 holds histories of any source: streams and episodes of any length.
//
//	preamble   64 bytes as in header.go; bytes 40 to 47 hold the number of bytes of the starts
//	records    stream by stream: a byte for each field of the observation before the action, the
//	           action, the reward's index in the header's list, with labels the best action in
//	           hindsight, zeros up to a multiple of four bytes
//	starts     u32, little endian, stream by stream: the first record of each episode, counted
//	           from the first record of its stream
//	JSON       recordsHeader
//
// A trainer reads records and starts from the mapped file, so a file may be larger than memory.
// Every record is checked when the file is opened, chunk by chunk, so that a file with holes is
// refused at the first one.

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"haul/internal/rng"
	"haul/internal/world"
	"haul/internal/world/episodic"
	"haul/internal/world/xland"
)

// recordsFormat is the version of such files.
const recordsFormat = 3

// chunkBytes is the number of bytes per checksum.
const chunkBytes = 1 << 24

// maxCurve is the largest number of episodes whose returns are stored per learner.
const maxCurve = 10_000

// recordsHeader is the JSON of a file.
type recordsHeader struct {
	World      json.RawMessage `json:"world"`
	Tasks      []int64         `json:"tasks"`
	SplitSeed  uint64          `json:"split_seed"`
	TrainRatio float64         `json:"train_ratio"`
	Streams    []recordStream  `json:"streams"`
	Labels     bool            `json:"labels,omitempty"` // a record has another byte: the best action
	Curves     [][]float64     `json:"curves"`           // mean return by episode, task by task
	Checksums  []uint32        `json:"crc32c"`           // of the records, by chunks of 16 MiB, and of the starts last
}

// recordBytes returns the size of a record in bytes.
func (h *recordsHeader) recordBytes(s world.Space) int {
	n := len(s.Fields) + 2
	if h.Labels {
		n++
	}
	return (n + 3) / 4 * 4
}

// recordStream is the history of one learner, or a part of it.
type recordStream struct {
	Task     int `json:"task"` // index
	Records  int `json:"records"`
	Episodes int `json:"episodes"`

	Open bool `json:"open,omitempty"` // its last episode does not end
}

// Records is an open file of version 3.
type Records struct {
	head    recordsHeader
	world   world.World
	tasks   []world.Task
	words   []int32
	starts  []uint32
	spans   [][]Span // by task
	release func() error
}

// Span is a stream in Data: its first record, and the index of its first episode in Starts.
type Span struct {
	First             int64
	Records, Episodes int
	Start             int64
}

// Data is the part of a file that is learned from.
type Data struct {
	Words  []int32
	Stride int // words per record
	Label  int // byte of a record that holds the best action; 0 if there is none
	// Spans and Starts are nil if all streams and episodes have the same length and are contiguous.
	Spans  []Span
	Starts []uint32
	Sum    string // checksum of the data; empty: the checksum of the words
}

// wordsOf converts bytes to words without copying. The mapping is aligned, and this program runs on
// little-endian machines only.
func wordsOf[T int32 | uint32](data []byte) []T {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)
}

// parseRecords parses and checks the bytes of a whole file. The result refers to data.
func parseRecords(data []byte, p preamble) (*Records, error) {
	payload, rest := data[preambleBytes:][:p.payload], data[preambleBytes+p.payload:]
	starts, text := rest[:p.starts], rest[p.starts:]
	if checksum(text) != p.jsonSum {
		return nil, errors.New("bad checksum of the header: the file is damaged")
	}
	h := &Records{release: func() error { return nil }}
	if err := json.Unmarshal(text, &h.head); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var err error
	if h.world, err = ParseWorld(h.head.World); err != nil {
		return nil, err
	}
	if err := h.lay(p); err != nil {
		return nil, err
	}
	h.words, h.starts = wordsOf[int32](payload), wordsOf[uint32](starts)
	if err := h.checkChunks(payload, starts); err != nil {
		return nil, err
	}
	for _, t := range h.head.Tasks {
		task := taskOf(h.world, t)
		if room, ok := h.world.(episodic.Room); ok {
			if t < 0 || t > math.MaxUint32 {
				return nil, fmt.Errorf("goal %d is none of a %v", t, room)
			}
			if err := room.CheckGoal(task.(episodic.Goal)); err != nil {
				return nil, err
			}
		}
		if w, ok := h.world.(xland.World); ok {
			if err := w.CheckTask(t); err != nil {
				return nil, err
			}
		}
		h.tasks = append(h.tasks, task)
	}
	return h, nil
}

// lay computes the position of every stream and checks the sizes.
func (h *Records) lay(p preamble) error {
	space := h.world.Space()
	if err := space.Check(); err != nil {
		return err
	}
	if r := h.head.TrainRatio; !(r >= 0 && r <= 1) {
		return fmt.Errorf("a train ratio of %v: want 0 to 1", r)
	}
	n := len(h.head.Tasks)
	if n == 0 || len(h.head.Curves) != n || len(slices.Compact(slices.Sorted(slices.Values(h.head.Tasks)))) != n {
		return fmt.Errorf("%d tasks with %d curves: want one of each, and no task twice", n, len(h.head.Curves))
	}
	h.spans = make([][]Span, n)
	var records, episodes int64
	for i, s := range h.head.Streams {
		if s.Task < 0 || s.Task >= n || s.Records < 1 || s.Records > maxSteps || s.Episodes < 1 || s.Episodes > s.Records {
			return fmt.Errorf("stream %d of task %d has %d records in %d episodes", i, s.Task, s.Records, s.Episodes)
		}
		h.spans[s.Task] = append(h.spans[s.Task], Span{First: records, Records: s.Records, Episodes: s.Episodes, Start: episodes})
		records, episodes = records+int64(s.Records), episodes+int64(s.Episodes)
	}
	if want := records * int64(h.head.recordBytes(space)); want != p.payload || episodes*4 != p.starts {
		return fmt.Errorf("its streams take %d bytes and %d of episodes' starts, the file holds %d and %d", want, episodes*4, p.payload, p.starts)
	}
	if want := int((p.payload+chunkBytes-1)/chunkBytes) + 1; len(h.head.Checksums) != want {
		return fmt.Errorf("%d checksums, want %d", len(h.head.Checksums), want)
	}
	return nil
}

// checkChunks verifies checksums and limits, chunk by chunk.
func (h *Records) checkChunks(payload, starts []byte) error {
	space := h.world.Space()
	limits := make([]byte, h.head.recordBytes(space)) // the largest value of each byte of a record
	for i, f := range space.Fields {
		limits[i] = byte(f.Size - 1)
	}
	limits[len(space.Fields)], limits[len(space.Fields)+1] = byte(space.Actions-1), byte(len(space.Rewards)-1)
	if h.head.Labels {
		limits[len(space.Fields)+2] = byte(space.Actions - 1)
	}
	for i := 0; len(payload) > 0; i++ {
		chunk := payload[:min(chunkBytes, len(payload))]
		if checksum(chunk) != h.head.Checksums[i] {
			return fmt.Errorf("bad checksum of the records at byte %d: the file is damaged", int64(i)*chunkBytes+preambleBytes)
		}
		at := int(int64(i) * chunkBytes % int64(len(limits)))
		for b, v := range chunk {
			if v > limits[at] {
				return fmt.Errorf("record %d has %d in byte %d, at most %d can be", (int64(i)*chunkBytes+int64(b))/int64(len(limits)), v, at, limits[at])
			}
			if at++; at == len(limits) {
				at = 0
			}
		}
		payload = payload[len(chunk):]
	}
	if checksum(starts) != h.head.Checksums[len(h.head.Checksums)-1] {
		return errors.New("bad checksum of the episodes' starts: the file is damaged")
	}
	for t := range h.spans {
		for _, s := range h.spans[t] {
			at := h.starts[s.Start:][:s.Episodes]
			for e, from := range at {
				if e == 0 && from != 0 || e > 0 && from <= at[e-1] || int64(from) >= int64(s.Records) {
					return fmt.Errorf("episode %d of a stream of task %d begins at record %d of %d", e, h.head.Tasks[t], from, s.Records)
				}
			}
		}
	}
	return nil
}

// World returns the world that the learners acted in.
func (h *Records) World() world.World { return h.world }

// Tasks returns the learners' tasks, in the file's order.
func (h *Records) Tasks() []world.Task { return h.tasks }

// Size returns the largest number of streams of a task and of transitions of a stream.
func (h *Records) Size() (streams, steps int) {
	for _, spans := range h.spans {
		streams = max(streams, len(spans))
		for _, s := range spans {
			steps = max(steps, s.Records)
		}
	}
	return streams, steps
}

// Curve returns the mean return by episode over the task's streams.
func (h *Records) Curve(task int) []float64 { return slices.Clone(h.head.Curves[task]) }

// Split splits the tasks by the file's seed and ratio.
func (h *Records) Split() (train, test []int) {
	return Deal(len(h.head.Tasks), h.head.SplitSeed, h.head.TrainRatio)
}

// Deal permutes the task indices by seed. The first round(ratio·tasks) are for training, the others
// are held out.
func Deal(tasks int, seed uint64, ratio float64) (train, test []int) {
	order := make([]int, tasks)
	for i := range order {
		order[i] = i
	}
	for i := len(order) - 1; i > 0; i-- {
		j := rng.Below(rng.At(seed, uint64(i), 0, rng.Goals)[0], uint32(i+1))
		order[i], order[j] = order[j], order[i]
	}
	n := int(math.Round(ratio * float64(len(order))))
	return order[:n:n], order[n:]
}

// Pack returns the first steps transitions of the first streams of each chosen task, without
// copying. 0 streams or steps means all.
func (h *Records) Pack(tasks []int, streams, steps int) (*Data, error) {
	space := h.world.Space()
	out := &Data{Words: h.words, Starts: h.starts, Stride: h.head.recordBytes(space) / 4}
	if h.head.Labels {
		out.Label = len(space.Fields) + 2
	}
	sum := make([]byte, 0, 64)
	for _, t := range tasks {
		for i, s := range h.spans[t] {
			if streams > 0 && i >= streams {
				break
			}
			if steps > 0 && s.Records > steps {
				s.Records = steps
				s.Episodes, _ = slices.BinarySearch(h.starts[s.Start:][:s.Episodes], uint32(steps))
			}
			out.Spans = append(out.Spans, s)
			sum = binary.LittleEndian.AppendUint64(sum, uint64(s.First))
			sum = binary.LittleEndian.AppendUint64(sum, uint64(s.Records))
		}
	}
	if len(out.Spans) == 0 {
		return nil, errors.New("pack histories: no tasks")
	}
	for _, c := range h.head.Checksums {
		sum = binary.LittleEndian.AppendUint32(sum, c)
	}
	out.Sum = fmt.Sprintf("%08x", checksum(sum))
	return out, nil
}

// Close unmaps the file.
func (h *Records) Close() error {
	release := h.release
	h.release = func() error { return nil }
	h.words, h.starts = nil, nil
	return release()
}
