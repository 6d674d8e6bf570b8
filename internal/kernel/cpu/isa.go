package cpu

import "fmt"

// SetVariable names the environment variable that forces an instruction set where nobody names one.
const SetVariable = "HAUL_SET"

// sets lists the instruction sets this processor can run, fastest first; plain Go is always last.
// It is filled once, before main, and read only after that.
var sets = append(vectorSets(), &plain)

// Sets names the instruction sets this processor can run, fastest first.
func Sets() []string {
	var names []string
	for _, s := range sets {
		names = append(names, s.name)
	}
	return names
}

// pick returns the table of the named set, or the fastest for "" and "auto".
func pick(name string) (*primitives, error) {
	if name == "" || name == "auto" {
		return sets[0], nil
	}
	for _, s := range sets {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("instruction set %q is not available here; this processor has %v", name, Sets())
}
