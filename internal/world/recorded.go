package world

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// EnvRecorded names a world that is known only from histories.
const EnvRecorded = "recorded"

// Recorded is a world that somebody else played: its space, and nothing of its rules.
type Recorded struct {
	Env      string `json:"env"` // EnvRecorded
	Title    string `json:"title"`
	Declared Space  `json:"space"`
	Longest  int    `json:"limit"` // steps of the longest episode
}

// Check refuses what no file can have.
func (r Recorded) Check() error {
	if r.Longest < 1 {
		return fmt.Errorf("episodes of at most %d steps: want at least 1", r.Longest)
	}
	return r.Declared.Check()
}

func (r Recorded) String() string { return fmt.Sprintf("recorded world %q", r.Title) }

// Name is the world's kind.
func (r Recorded) Name() string { return EnvRecorded }

// Describe is the world in words.
func (r Recorded) Describe() string {
	s := r.Declared
	return fmt.Sprintf("%s: %s, %d actions, %s of a reward, episodes of at most %s", shown(r.Title), counted(len(s.Fields), "field"), s.Actions, counted(len(s.Rewards), "value"), counted(r.Longest, "step"))
}

// counted is a number before its noun.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// shown is a title on one line, since a file may be anybody's.
func shown(title string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, title)
}

// Space is what an agent sees, does and is paid.
func (r Recorded) Space() Space { return r.Declared }

// Limit is the longest episode.
func (r Recorded) Limit() int { return r.Longest }

// Number is a task that is known by its number alone.
type Number int64

func (n Number) String() string { return "task " + strconv.FormatInt(int64(n), 10) }

// MarshalJSON writes the number.
func (n Number) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil }

// Level is the value of a field that measures: how many of its edges are at or below v.
func (f Field) Level(v float64) int {
	n, found := slices.BinarySearch(f.Edges, v)
	if found {
		n++
	}
	return n
}
