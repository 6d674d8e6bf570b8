package history

// A history file is a preamble of 64 bytes, the transitions (goal by goal, stream by stream), and a
// JSON block. The block comes last because a learner's curve is known only at the end of its
// training. The preamble is written after everything else, and the file gets its name after that,
// so every file with the name is complete.
//
// preamble, little endian:
//	 0  magic "HAULHIST"
//	 8  u32 format version: 1 for Dark Room, 2 for a room whose rules programs of version 1 do not
//	    know, 3 for anybody's histories (records.go)
//	16  u64 bytes of transitions
//	24  u64 bytes of JSON
//	32  u32 CRC-32C of the JSON, which holds one CRC-32C per goal
//	60  u32 CRC-32C of the 60 bytes before

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"haul/internal/world/grid"
)

const (
	magic         = "HAULHIST"
	newestFormat  = recordsFormat
	keyDoorFormat = 2
	preambleBytes = 64
)

// maxStreams and maxSteps keep all sizes of a file within an int64.
const (
	maxStreams = 1 << 20
	maxSteps   = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // a processor instruction on most CPUs

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// Header describes the contents of a history file.
type Header struct {
	Room       grid.Room   `json:"room"`
	Goals      []grid.Goal `json:"goals"` // in the file's order: a goal's index is its index here
	SplitSeed  uint64      `json:"split_seed"`
	TrainRatio float64     `json:"train_ratio"`
	Streams    int         `json:"streams"`  // environments per goal
	Steps      int         `json:"steps"`    // transitions per stream
	Settings   string      `json:"settings"` // as YAML: the settings that the histories were made with
}

// block is the JSON of a file: the caller's header and the writer's measurements.
type block struct {
	Header
	Optimal   []float64   `json:"optimal"` // best return of an episode, goal by goal
	Curves    [][]float64 `json:"curves"`  // mean return of each episode over the streams, goal by goal
	Checksums []uint32    `json:"crc32c"`  // of the transitions, goal by goal
}

// Check returns an error if no file can have this header.
func (h *Header) Check() error {
	if err := h.Room.Check(); err != nil {
		return err
	}
	switch {
	case h.Streams == 0:
		return errors.New("zero streams: a learner needs at least one environment")
	case h.Streams < 0 || h.Streams > maxStreams:
		return fmt.Errorf("%d streams: want 1 to %d", h.Streams, maxStreams)
	case h.Steps < 1 || h.Steps > maxSteps:
		return fmt.Errorf("%d steps per stream: want 1 to %d", h.Steps, maxSteps)
	case len(h.Goals) == 0:
		return errors.New("no goals")
	case !(h.TrainRatio >= 0 && h.TrainRatio <= 1):
		return fmt.Errorf("a train ratio of %v: want 0 to 1", h.TrainRatio)
	}
	seen := map[grid.Goal]bool{}
	for _, g := range h.Goals {
		if err := h.Room.CheckGoal(g); err != nil {
			return err
		}
		if seen[g] {
			return fmt.Errorf("goal %v appears twice", g)
		}
		seen[g] = true
	}
	return nil
}

// goalBytes returns the size of one goal's transitions in bytes.
func (h *Header) goalBytes() int64 { return int64(h.Streams) * int64(h.Steps) * stepBytes }

// Split returns the indices of the goals to learn from and of the held-out goals, by the header's
// seed and ratio, in the split's order.
func (h *Header) Split() (train, test []int) {
	index := map[grid.Goal]int{}
	for i, g := range h.Goals {
		index[g] = i
	}
	in := func(goals []grid.Goal) (out []int) {
		for _, g := range goals {
			if i, ok := index[g]; ok {
				out = append(out, i)
			}
		}
		return out
	}
	a, b := h.Room.Split(h.SplitSeed, h.TrainRatio)
	return in(a), in(b)
}

// formatOf returns the version of files of a room.
func formatOf(r grid.Room) uint32 {
	if r.Kind == grid.DarkRoom {
		return 1
	}
	return keyDoorFormat
}

// preamble holds the fields of a file's first bytes.
type preamble struct {
	payload, json int64
	starts        int64 // size of the episodes' starts in bytes, in version 3
	jsonSum       uint32
	format        uint32
}

func (p preamble) bytes() []byte {
	out := make([]byte, preambleBytes)
	copy(out, magic)
	binary.LittleEndian.PutUint32(out[8:], p.format)
	binary.LittleEndian.PutUint64(out[16:], uint64(p.payload))
	binary.LittleEndian.PutUint64(out[24:], uint64(p.json))
	binary.LittleEndian.PutUint32(out[32:], p.jsonSum)
	binary.LittleEndian.PutUint64(out[40:], uint64(p.starts))
	binary.LittleEndian.PutUint32(out[60:], checksum(out[:60]))
	return out
}

// readPreamble parses the first bytes and checks them against the size of the file.
func readPreamble(data []byte) (preamble, error) {
	var p preamble
	have := min(len(data), len(magic))
	if string(data[:have]) != magic[:have] || have == 0 {
		return p, errors.New("not a history file: it does not begin with " + magic)
	}
	if len(data) < preambleBytes {
		return p, fmt.Errorf("cut short: %d bytes, the preamble alone takes %d", len(data), preambleBytes)
	}
	p.format = binary.LittleEndian.Uint32(data[8:])
	if p.format < 1 || p.format > newestFormat {
		return p, fmt.Errorf("format version %d, this program reads 1 to %d: make the file again with `haul data`", p.format, newestFormat)
	}
	if checksum(data[:60]) != binary.LittleEndian.Uint32(data[60:]) {
		return p, errors.New("bad checksum of the preamble: the file is damaged")
	}
	p.payload = int64(binary.LittleEndian.Uint64(data[16:]))
	p.json = int64(binary.LittleEndian.Uint64(data[24:]))
	p.jsonSum = binary.LittleEndian.Uint32(data[32:])
	if p.format == recordsFormat {
		p.starts = int64(binary.LittleEndian.Uint64(data[40:]))
	}
	const limit = 1 << 61 // larger than in any header that passes Check; twice the limit fits an int64
	if p.payload < 0 || p.json < 0 || p.starts < 0 || p.payload > limit || p.json > limit || p.starts > limit/2 {
		return p, fmt.Errorf("impossible sizes: %d bytes of transitions, %d of JSON", p.payload, p.json)
	}
	switch want := preambleBytes + p.payload + p.starts + p.json; {
	case int64(len(data)) < want:
		return p, fmt.Errorf("cut short: %d bytes of %d: copy or make it again", len(data), want)
	case int64(len(data)) > want:
		return p, fmt.Errorf("%d bytes follow its end", int64(len(data))-want)
	}
	return p, nil
}

// readBlock parses and checks the JSON of a file with the given number of bytes of transitions.
func readBlock(text []byte, payload int64) (block, error) {
	var b block
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("header: %w", err)
	}
	if err := b.Check(); err != nil {
		return b, err
	}
	n := len(b.Goals)
	if want := b.goalBytes() * int64(n); want != payload {
		return b, fmt.Errorf("%d goals, %d streams and %d steps take %d bytes, the file holds %d", n, b.Streams, b.Steps, want, payload)
	}
	if len(b.Optimal) != n || len(b.Curves) != n || len(b.Checksums) != n {
		return b, fmt.Errorf("%d goals with %d optimal returns, %d curves and %d checksums", n, len(b.Optimal), len(b.Curves), len(b.Checksums))
	}
	for g, c := range b.Curves {
		if best := b.Room.Optimal(b.Goals[g]); b.Optimal[g] != best {
			return b, fmt.Errorf("goal %v has an optimal return of %v, the header says %v", b.Goals[g], best, b.Optimal[g])
		}
		if len(c) != b.Steps/b.Room.Horizon {
			return b, fmt.Errorf("the curve of goal %v has %d episodes, its streams have %d", b.Goals[g], len(c), b.Steps/b.Room.Horizon)
		}
	}
	return b, nil
}
