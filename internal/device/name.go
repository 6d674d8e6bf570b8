package device

import (
	"fmt"
	"strconv"
	"strings"
)

// Name is a device as a user names it.
type Name struct {
	Auto bool // the fastest of all
	CPU  bool
	Card int // of a GPU
}

// ParseName reads cpu, cuda, cuda:K and auto. It asks nobody whether the card is there.
func ParseName(s string) (Name, error) {
	kind, index, indexed := strings.Cut(s, ":")
	switch {
	case s == "auto":
		return Name{Auto: true}, nil
	case s == "cpu":
		return Name{CPU: true}, nil
	case kind != "cuda":
		return Name{}, fmt.Errorf("unknown device %q: use cpu, cuda:K or auto", s)
	case !indexed:
		return Name{}, nil
	}
	card, err := strconv.Atoi(index)
	if err != nil || card < 0 {
		return Name{}, fmt.Errorf("device %s: the card is a number, as in cuda:0", s)
	}
	return Name{Card: card}, nil
}

// Kind is the part of an open device's name (kernel.Device.Name) that decides results: not which of
// several cards it is, nor the number of workers. "cpu (avx512, 2 workers)" and "cuda:1 (NVIDIA
// H200, tf32)" are such names; checkpoints keep them.
func Kind(name string) string {
	place, what, _ := strings.Cut(name, " (")
	kind, _, card := strings.Cut(place, ":")
	if !card {
		what, _, _ = strings.Cut(what, ",")
	}
	return kind + " (" + strings.TrimSuffix(what, ")") + ")"
}

// OnGPU says whether a device's name, as a user gives it or as an open device has it, is a card's.
func OnGPU(name string) bool {
	place, _, _ := strings.Cut(name, " (")
	kind, _, _ := strings.Cut(place, ":")
	return kind == "cuda"
}
