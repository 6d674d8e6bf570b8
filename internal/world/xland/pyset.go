package xland

import (
	"math/bits"
	"slices"
)

// pySet is a set of tiles that iterates in the order of CPython's sets of (kind, colour). The
// public generator draws from list(set(a) - set(b)), whose order depends on the hash tables.
type pySet struct {
	table      []pyEntry // its length is a power of two
	fill, used int
}

type pyEntry struct {
	tile Tile
	full bool // whether the slot has ever been used; a removed tile leaves it set
	gone bool
}

// newPySet is set(tiles), added in sequence.
func newPySet(tiles []Tile) *pySet {
	s := &pySet{table: make([]pyEntry, 8)}
	for _, t := range tiles {
		s.add(t)
	}
	return s
}

// pyHash is hash((kind, colour)).
func pyHash(t Tile) uint64 {
	const one, two, five = 11400714785074694791, 14029467366897019727, 2870177450012600261
	sum := uint64(five)
	for _, v := range []uint8{t.Kind(), t.Colour()} {
		sum = bits.RotateLeft64(sum+uint64(v)*two, 31) * one
	}
	if sum += 2 ^ (five ^ 3527539); sum == 1<<64-1 {
		return 1546275796
	}
	return sum
}

// find returns the slot of a tile, or the first never used slot on its probe sequence.
func (s *pySet) find(t Tile) (slot int, found bool) {
	const probes = 9
	mask, hash := uint64(len(s.table)-1), pyHash(t)
	i, perturb := hash&mask, hash
	for {
		last := i
		if i+probes <= mask {
			last = i + probes
		}
		for at := i; at <= last; at++ {
			if e := &s.table[at]; !e.full {
				return int(at), false
			} else if e.tile == t {
				return int(at), true
			}
		}
		perturb >>= 5
		i = (i*5 + 1 + perturb) & mask
	}
}

func (s *pySet) add(t Tile) {
	slot, found := s.find(t)
	if found {
		return
	}
	s.table[slot] = pyEntry{tile: t, full: true}
	s.fill++
	s.used++
	if s.fill*5 >= (len(s.table)-1)*3 {
		s.resize(s.used * 4)
	}
}

// resize rehashes all tiles into a table with more than `least` slots.
func (s *pySet) resize(least int) {
	size := 8
	for size <= least {
		size *= 2
	}
	old := s.list()
	s.table, s.fill, s.used = make([]pyEntry, size), len(old), len(old)
	for _, t := range old {
		slot, _ := s.find(t)
		s.table[slot] = pyEntry{tile: t, full: true}
	}
}

// list is list(s).
func (s *pySet) list() []Tile {
	out := make([]Tile, 0, s.used)
	for _, e := range s.table {
		if e.full && !e.gone {
			out = append(out, e.tile)
		}
	}
	return out
}

// minus is list(s - set(tiles)).
func (s *pySet) minus(tiles []Tile) []Tile {
	distinct := slices.Compact(slices.Sorted(slices.Values(tiles)))
	if s.used/4 > len(distinct) { // CPython copies the set and removes tiles; otherwise it builds a new set
		out := &pySet{table: s.table, used: s.used}
		out.resize(2 * s.used)
		for _, t := range distinct {
			if slot, found := out.find(t); found {
				out.table[slot].gone = true
				out.used--
			}
		}
		if out.fill-out.used > (len(out.table)-1)/4 {
			out.resize(out.used * 4)
		}
		return out.list()
	}
	out := newPySet(nil)
	for _, t := range s.list() {
		if !slices.Contains(distinct, t) {
			out.add(t)
		}
	}
	return out.list()
}
