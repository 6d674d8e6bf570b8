package world

import "encoding/binary"

// Step is one transition: the cell before the action, the action, and the reward of the step.
// Bits 0..7 hold the cell, 8..10 the action, 11 the reward; the rest are zero.
type Step uint16

// MakeStep packs a transition.
func MakeStep(c Cell, action, reward uint8) Step {
	return Step(c) | Step(action)<<8 | Step(reward)<<11
}

// Cell is where the agent stood before it acted.
func (s Step) Cell() Cell { return Cell(s) }

// Action is what it did.
func (s Step) Action() uint8 { return uint8(s >> 8 & 7) }

// Reward is what it got, 0 or 1.
func (s Step) Reward() uint8 { return uint8(s >> 11 & 1) }

// Word is the transition as a device keeps it: x | y<<8 | action<<16 | reward<<24.
func (s Step) Word() int32 {
	w := uint32(s)
	return int32(w&15 | w>>4&15<<8 | w>>8&7<<16 | w>>11&1<<24)
}

// stepBytes is what a transition takes in a file.
const stepBytes = 2

// Steps is a run of transitions as a file holds them, little endian. It may be a mapped file's own
// memory: it is read only, and it ends with its History.
type Steps []byte

// Len is the number of transitions.
func (s Steps) Len() int { return len(s) / stepBytes }

// At returns transition t.
func (s Steps) At(t int) Step { return Step(binary.LittleEndian.Uint16(s[t*stepBytes:])) }

// slice returns transitions [from, to).
func (s Steps) slice(from, to int) Steps { return s[from*stepBytes : to*stepBytes] }

func encode(steps []Step) Steps {
	out := make(Steps, len(steps)*stepBytes)
	for t, s := range steps {
		binary.LittleEndian.PutUint16(out[t*stepBytes:], uint16(s))
	}
	return out
}

// curve is the mean return of each whole episode over a goal's streams, which lie one after
// another.
func curve(room Room, all Steps, streams int) []float64 {
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
