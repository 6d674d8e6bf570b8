package memory

import "fmt"

// topPlaces bounds the places in the code that a report lists.
const topPlaces = 8

// Write prints the report for a person, a line at a time.
func (rep *Report) Write(p func(format string, args ...any)) {
	where := ""
	if rep.PeakEvent >= 0 {
		where = fmt.Sprintf(", at event %d of %d, in %s", rep.PeakEvent, rep.Events, rep.PeakPhase)
	}
	p("Memory of GPU %d: at most %s MiB allocated, with %s MiB reserved%s.", rep.Device, Size(rep.Peak), Size(rep.Reserved), where)
	p("%s", rep.Verdict())
	p("\nWhat holds the peak, MiB")
	for _, h := range rep.Kinds {
		p("  %10s  %s, %s", Size(h.MiB), h.Name, blocks(h.Blocks))
	}
	if len(rep.Places) > 0 {
		p("\nWho asked for it since the recording began, MiB")
		for _, h := range rep.TopPlaces() {
			p("  %10s  %s, %s", Size(h.MiB), h.Name, blocks(h.Blocks))
		}
	}
	for i, f := range rep.Findings {
		p("\n%d. %s: saves up to %s MiB", i+1, f.ID, Size(f.Saves))
		for _, e := range f.Evidence {
			p("   - %s", e)
		}
		p("   Remedy: %s", f.Remedy)
	}
	p("\nAllocated: %s MiB at the start, %s at the end, where %s are reserved.", Size(rep.Start), Size(rep.End), Size(rep.EndReserved))
	p("Unused at the peak: %s MiB, of which the largest free piece has %s.", Size(rep.Unused()), Size(rep.FreeBlock))
}

// TopPlaces returns the places that hold most.
func (rep *Report) TopPlaces() []Holding { return rep.Places[:min(topPlaces, len(rep.Places))] }

func blocks(n int) string {
	if n == 1 {
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", n)
}
