// Package history reads and writes files of learning histories: what learners did in a world,
// task by task, from the first episode to the last. The in-context agent is trained on them.
//
// What a reader could break: files are kept for years. A version's bytes keep their meaning, and
// everything in a file is checked before it indexes a table.
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

// History is an open file, whatever world its learners lived in. A task is known by its index in
// Tasks. It may be read from many goroutines.
type History interface {
	World() world.World
	Tasks() []world.Task
	Split() (train, test []int) // the tasks to learn from and those held out
	Size() (streams, steps int) // streams of each task, transitions of each stream
	Curve(task int) []float64   // the learner's mean return by episode
	// Pack is the first steps transitions of the first streams of each chosen task, as records of the
	// space's Words words. Where streams are equal, transition t of stream s of the g-th choice is
	// record (g·streams+s)·steps+t.
	Pack(tasks []int, streams, steps int) (*Data, error)
	Close() error
}

// Open maps a file and judges all of it: sizes, checksums, and every transition by the rules of its
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

// parseAny judges a file of any version.
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

// OpenRooms is Open for a file of learners in a room.
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

// Matches refuses the histories of another world than that of a checkpoint's agent.
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

// ParseWorld reads a world as checkpoints and files name it.
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

// taskOf is a task of a world by the number that a file has.
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
