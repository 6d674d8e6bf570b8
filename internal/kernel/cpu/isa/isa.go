package isa

import (
	"fmt"
	"os"
)

// SetVariable names the environment variable that forces an instruction set where nobody names one.
const SetVariable = "HAUL_SET"

// Tables lists the instruction sets this processor can run, fastest first; plain Go is always last.
// It is filled once, before main, and read only after that.
var Tables = append(vectorSets(), &Plain)

// Sets names the instruction sets this processor can run, fastest first.
func Sets() []string {
	var names []string
	for _, s := range Tables {
		names = append(names, s.Name)
	}
	return names
}

// pick returns the table of the named set, or the fastest for "" and "auto".
func pick(name string) (*Primitives, error) {
	if name == "" || name == "auto" {
		return Tables[0], nil
	}
	for _, s := range Tables {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("instruction set %q is not available here; this processor has %v", name, Sets())
}

// PickFor is pick for products in that precision, of the environment's set where none is named;
// there are no tiles in fp32.
func PickFor(precision, set string) (p *Primitives, tiles *TileSet, err error) {
	by := ""
	if forced := os.Getenv(SetVariable); set == "" && forced != "" {
		set, by = forced, SetVariable+": "
	}
	switch precision {
	case "", "fp32":
		p, err = pick(set)
	case "bf16":
		p, tiles, err = PickTiles(set)
	default:
		return nil, nil, fmt.Errorf("a CPU has no precision %s: use fp32 or bf16", precision)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s%w", by, err)
	}
	return p, tiles, nil
}

// SetName is the instruction set that the products of weights run on.
func SetName(p *Primitives, t *TileSet) string {
	if t == nil || t.set == "" {
		return p.Name
	}
	return t.Name
}

// PrecisionOf is what products with weights round their operands to.
func PrecisionOf(t *TileSet) string {
	if t != nil {
		return "bf16"
	}
	return "fp32"
}

// PeakOf is the loop of nothing but what products are made of.
func PeakOf(p *Primitives, t *TileSet) func(rounds int) (flop float64) {
	if t != nil && t.peak != nil {
		return t.peak
	}
	return p.Peak
}
