// Package history reads and writes files of learning histories: the steps of learners in a world,
// task by task, from the first episode to the last. `haul data` writes them and the in-context
// agent is trained on them.
//
// Files are kept for years: the meaning of a version's bytes never changes. Every value of a file
// is checked before it is used as an index.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"haul/internal/world"
	"haul/internal/world/episodic"
	"haul/internal/world/grid"
	"haul/internal/world/xland"
)

// History is an open file of any world. A task is identified by its index in Tasks. Several
// goroutines may read a History.
type History interface {
	World() world.World
	Tasks() []world.Task
	Split() (train, test []int) // indices of the tasks to learn from and of the held-out tasks
	Size() (streams, steps int) // number of streams per task and of transitions per stream
	Curve(task int) []float64   // the learner's mean return by episode
	// Pack returns the first steps transitions of the first streams of each chosen task, as records
	// of the space's Words words. If all streams have the same length, transition t of stream s of
	// choice g is record (g·streams+s)·steps+t.
	Pack(tasks []int, streams, steps int) (*Data, error)
	Close() error
}

// Open maps a file and checks all of it: sizes, checksums, and every transition by the rules of its
// world.
func Open(path string) (History, error) {
	data, release, err := openMapped(path)
	if err != nil {
		return nil, fmt.Errorf("history %s: %w", path, bare(err))
	}
	h, err := parseAny(data, release)
	if err != nil {
		return nil, fmt.Errorf("history %s: %w", path, errors.Join(err, release()))
	}
	return h, nil
}

// parseAny parses and checks a file of any version.
func parseAny(data []byte, release func() error) (History, error) {
	p, err := readPreamble(data)
	if err != nil {
		return nil, err
	}
	if p.format == recordsFormat {
		h, err := parseRecords(data, p)
		if err != nil {
			return nil, err
		}
		h.release = release
		return h, nil
	}
	h, err := parse(data)
	if err != nil {
		return nil, err
	}
	h.release = release
	return h, nil
}

// OpenRooms opens like Open, and refuses files that are not of a room.
func OpenRooms(path string) (*Rooms, error) {
	h, err := Open(path)
	if err != nil {
		return nil, err
	}
	rooms, ok := h.(*Rooms)
	if !ok {
		return nil, errors.Join(fmt.Errorf("history %s: it holds histories of another kind, of a %v", path, h.World()), h.Close())
	}
	return rooms, nil
}

// Matches returns an error if the histories are of another world than a checkpoint's agent.
func Matches(h History, want world.World) error {
	have, err := json.Marshal(h.World())
	if err != nil {
		return err
	}
	asked, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if bytes.Equal(have, asked) {
		return nil
	}
	theirs, own := h.World().Describe(), want.Describe()
	if theirs == own {
		theirs += " with other values of fields or rewards"
	}
	return fmt.Errorf("the agent was trained in another world (%s) than that of the histories (%s): name its own histories with --history", own, theirs)
}

// ParseWorld parses a world in the JSON of checkpoints and files.
func ParseWorld(text []byte) (world.World, error) {
	var kind struct {
		Env string `json:"env"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	switch kind.Env {
	case world.EnvRecorded:
		var w world.Recorded
		if err := json.Unmarshal(text, &w); err != nil {
			return nil, err
		}
		return w, w.Check()
	case episodic.EnvName:
		var w episodic.Room
		if err := json.Unmarshal(text, &w); err != nil {
			return nil, err
		}
		return w, w.Check()
	case xland.EnvName:
		return xland.Parse(text)
	}
	var room grid.Room
	if err := json.Unmarshal(text, &room); err != nil {
		return nil, err
	}
	return room, room.Check()
}

// taskOf returns a world's task with the given number.
func taskOf(w world.World, number int64) world.Task {
	switch w.(type) {
	case grid.Room:
		return grid.Goal(number)
	case episodic.Room:
		return episodic.Goal(number)
	case xland.World:
		return xland.ID(number)
	}
	return world.Number(number)
}

func openMapped(path string) ([]byte, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // a mapping stays valid after its file is closed
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
