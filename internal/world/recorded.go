package world

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// EnvRecorded is the env of a world that is known only from histories.
const EnvRecorded = "recorded"

// Recorded is a world that another program played. It has a space but no rules.
type Recorded struct {
	Env      string `json:"env"` // EnvRecorded
	Title    string `json:"title"`
	Declared Space  `json:"space"`
	Longest  int    `json:"limit"` // number of steps of the longest episode
}

// Check returns an error if no file of histories can have these values.
func (r Recorded) Check() error {
	if r.Longest < 1 {
		return fmt.Errorf("episodes of at most %d steps: want at least 1", r.Longest)
	}
	return r.Declared.Check()
}

func (r Recorded) String() string { return fmt.Sprintf("recorded world %q", r.Title) }

// Name returns EnvRecorded.
func (r Recorded) Name() string { return EnvRecorded }

// Describe returns a description of the world.
func (r Recorded) Describe() string {
	s := r.Declared
	return fmt.Sprintf("%s: %s, %d actions, %s of a reward, episodes of at most %s", shown(r.Title), counted(len(s.Fields), "field"), s.Actions, counted(len(s.Rewards), "value"), counted(r.Longest, "step"))
}

// counted returns a number and its noun as text.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// shown returns a title as one printable line, because a file's title may contain anything.
func shown(title string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, title)
}

// Space returns the declared space.
func (r Recorded) Space() Space { return r.Declared }

// Limit returns the length of the longest episode.
func (r Recorded) Limit() int { return r.Longest }

// Number is a task that has only a number.
type Number int64

func (n Number) String() string { return "task " + strconv.FormatInt(int64(n), 10) }

// MarshalJSON writes the number.
func (n Number) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil }

// Level returns the value of a real-valued field: the number of its edges that are at or below v.
func (f Field) Level(v float64) int {
	n, found := slices.BinarySearch(f.Edges, v)
	if found {
		n++
	}
	return n
}
