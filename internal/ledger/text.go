package ledger

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// what describes ops in words; an op without a description is called by its name.
var what = map[string]string{
	"linear":         "matrix products",
	"linear.dx":      "matrix products for the gradient of inputs",
	"linear.dw":      "matrix products for the gradient of weights",
	"attention":      "attention",
	"attention.grad": "the gradient of attention",
	"norm":           "layer normalisation",
	"norm.grad":      "the gradient of layer normalisation",
	"glu":            "gated units",
	"glu.grad":       "the gradient of gated units",
	"rollout":        "building routes",
	"rollout.greedy": "building routes greedily",
	"rollout.grad":   "the gradient of the routes' probabilities",
	"generate":       "generating instances",
	"adamw":          "summing gradients and updating weights",
	"muon":           "updating weights by Muon",
}

// Largest describes each of the n largest costs in a sentence, idle time included.
func (l *Ledger) Largest(n int) []string {
	lines := l.Ops
	for _, s := range l.Stages {
		if s.Stage != Idle {
			continue
		}
		at := 0
		for at < len(l.Ops) && l.Ops[at].Seconds >= s.Seconds {
			at++
		}
		lines = append(append(append([]Line(nil), l.Ops[:at]...), s), l.Ops[at:]...)
	}
	var out []string
	for _, line := range lines[:min(n, len(lines))] {
		out = append(out, l.sentence(line))
	}
	return out
}

func (l *Ledger) sentence(line Line) string {
	if line.Stage == Idle {
		if l.Workers > 1 {
			return fmt.Sprintf("%.1f %% of the workers' time passes with nothing to run: they wait for each other", 100*line.Share)
		}
		return fmt.Sprintf("%.1f %% of the step passes with nothing to run: the device waits for a launch", 100*line.Share)
	}
	name, ok := what[line.Op]
	if !ok {
		name = line.Op
	}
	s := fmt.Sprintf("%s (%s) %s %.1f %% of the time", name, line.Stage, verb(name), 100*line.Share)
	switch {
	case line.Roof == 0:
		return s
	case line.Bound == "memory":
		return s + fmt.Sprintf(", at %.0f %% of what memory allows", 100*line.Roof)
	}
	return s + fmt.Sprintf(", at %.0f %% of the multiply-add peak", 100*line.Roof)
}

func verb(name string) string {
	if strings.HasPrefix(name, "matrix products") || name == "gated units" {
		return "take"
	}
	return "takes"
}

// Summary describes the step in three lines: its time, its largest costs, its requests to the
// device.
func (l *Ledger) Summary() []string {
	idle := 0.0
	for _, s := range l.Stages {
		if s.Stage == Idle {
			idle = s.Share
		}
	}
	top := make([]string, 0, 3)
	for _, o := range l.Ops[:min(3, len(l.Ops))] {
		top = append(top, fmt.Sprintf("%s of %s %.0f %%", o.Op, o.Stage, 100*o.Share))
	}
	c := l.PerStep
	return []string{
		fmt.Sprintf("a step takes %s, %.0f %% of it idle", duration(l.Plain), 100*idle),
		"most of it: " + strings.Join(top, ", "),
		fmt.Sprintf("a step asks for %s launches, %s waits, %s copies and %s allocations", number(c.Launches), number(c.Waits), number(c.CopiesIn+c.CopiesOut), number(c.Allocations)),
	}
}

// WriteText writes the ledger for a user: the largest costs in words, then the tables.
func (l *Ledger) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, batch %d, on %s: %s per step\n\n", l.Program, l.Batch, l.Device, duration(l.Plain))
	for i, s := range l.Largest(3) {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, s)
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\ttime\tshare\tGFLOP\tMB\tGFLOP/s\tof roof\tbound\t\t")
	var sum Line
	for _, s := range l.Stages {
		l.row(t, string(s.Stage), s)
		sum.Seconds += s.Seconds
		sum.Share += s.Share
		sum.FLOPs += s.FLOPs
		sum.Bytes += s.Bytes
	}
	if sum.Seconds > 0 {
		sum.Rate = float64(sum.FLOPs) * float64(l.Workers) / sum.Seconds
	}
	l.row(t, "all", sum)
	fmt.Fprintln(t, "\t\t\t\t\t\t\t\t\t")
	fmt.Fprintln(t, "op\ttime\tshare\tGFLOP\tMB\tGFLOP/s\tof roof\tbound\tstage\t")
	for _, o := range l.Ops {
		l.row(t, o.Op, o, string(o.Stage))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteByte('\n')
	l.notes(&b)
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

func (l *Ledger) row(w io.Writer, name string, line Line, more ...string) {
	rate, roof := "", ""
	if line.FLOPs > 0 {
		rate = fmt.Sprintf("%.1f", line.Rate/1e9)
	}
	if line.Roof > 0 {
		roof = fmt.Sprintf("%.0f %%", 100*line.Roof)
	}
	fmt.Fprintf(w, "%s\t%s\t%.1f %%\t%.3f\t%.2f\t%s\t%s\t%s\t%s\t\n", name, duration(line.Seconds), 100*line.Share, float64(line.FLOPs)/1e9, float64(line.Bytes)/1e6,
		rate, roof, line.Bound, strings.Join(more, ""))
}

func (l *Ledger) notes(b *strings.Builder) {
	c := l.PerStep
	if l.Workers > 1 {
		fmt.Fprintf(b, "times are of %d workers together: the step's %s offer %s\n", l.Workers, duration(l.Wall), duration(l.Wall*float64(l.Workers)))
	}
	if l.Peak > 0 {
		fmt.Fprintf(b, "roof, measured beside the step: %.1f GFLOP/s and %.1f GB/s\n", l.Peak/1e9, l.Stream/1e9)
	}
	if l.Actions > 0 {
		fmt.Fprintf(b, "routes took %.1f decode steps each; arithmetic is counted by formula, bytes are the fewest an op must move\n", l.Actions)
	}
	fmt.Fprintf(b, "a plain step: launches %s, waits %s, copies in %s (%s B), out %s (%s B), device allocations %s, Go heap objects %s (%s B)\n", number(c.Launches), number(c.Waits),
		number(c.CopiesIn), number(c.BytesIn), number(c.CopiesOut), number(c.BytesOut), number(c.Allocations), number(c.HeapObjects), number(c.HeapBytes))
	for i, k := range l.Copies {
		lead, way := "", "in"
		if i == 0 {
			lead = "copies since the device was opened: "
		}
		if k.Out {
			way = "out"
		}
		fmt.Fprintf(b, "%s%s %d × %s B %s", lead, k.Tag, k.Count, number(float64(k.Bytes)/float64(k.Count)), way)
		if i < len(l.Copies)-1 {
			fmt.Fprint(b, ", ")
		} else {
			fmt.Fprintln(b)
		}
	}
	noise := ""
	if l.Overhead < 0 {
		noise = ", less than steps differ among themselves"
	}
	fmt.Fprintf(b, "instruments: the step that was taken apart took %s, a plain one %s (median): %+.1f %%%s\n", duration(l.Wall), duration(l.Plain), 100*l.Overhead, noise)
}

func duration(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.1f µs", 1e6*seconds)
	case seconds < 1:
		return fmt.Sprintf("%.2f ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.2f s", seconds)
}

// number formats a count, with one decimal if it is not whole.
func number(n float64) string {
	if n == float64(int64(n)) {
		return fmt.Sprintf("%d", int64(n))
	}
	return fmt.Sprintf("%.1f", n)
}
