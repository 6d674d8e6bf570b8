package history

import (
	"encoding/binary"

	"haul/internal/world/grid"
)

// stepBytes is the size of a transition in a file.
const stepBytes = 2

// Steps is a sequence of transitions in a file's encoding, little endian. It may refer to a mapped
// file: it is read-only, and becomes invalid when its History is closed.
type Steps []byte

// Len returns the number of transitions.
func (s Steps) Len() int { return len(s) / stepBytes }

// At returns transition t.
func (s Steps) At(t int) grid.Step { return grid.Step(binary.LittleEndian.Uint16(s[t*stepBytes:])) }

// slice returns transitions [from, to).
func (s Steps) slice(from, to int) Steps { return s[from*stepBytes : to*stepBytes] }

func encode(steps []grid.Step) Steps {
	out := make(Steps, len(steps)*stepBytes)
	for t, s := range steps {
		binary.LittleEndian.PutUint16(out[t*stepBytes:], uint16(s))
	}
	return out
}

// curve returns the mean return of each whole episode over a goal's streams, which are contiguous
// in all.
func curve(room grid.Room, all Steps, streams int) []float64 {
	steps := all.Len() / streams
	out := make([]float64, steps/room.Horizon)
	for e := range out {
		sum := 0
		for s := range streams {
			from := s*steps + e*room.Horizon
			for t := range room.Horizon {
				sum += int(all.At(from + t).Reward())
			}
		}
		out[e] = float64(sum) / float64(streams)
	}
	return out
}
