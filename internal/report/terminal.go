package report

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Terminal tells a person. With Live it keeps a block at the bottom of the screen (where the run stands, and a curve) below one
// line per record; without, it prints the lines alone, as pipes and logs want them.
type Terminal struct {
	Screen
	info *Info
}

// chartRows is the height of the curve.
const chartRows = 5

// Start prints the banner: what runs, on what, with what, and where results go.
func (t *Terminal) Start(i *Info) {
	t.info = i
	title, own := i.View.Banner(t.Live)
	rows := [][2]string{
		{"model", fmt.Sprintf("%s, %s parameters", i.Recipe, Thousands(int64(i.Parameters)))},
		{"device", fmt.Sprintf("%s, %s", i.Device, i.Precision)},
	}
	rows = append(append(rows, own...), [2]string{"memory", Bytes(i.Memory)}, [2]string{"results", i.Dir})
	t.write(t.paint(bold, fmt.Sprintf("%s: %s", i.Config, title)))
	t.banner(rows, i.Paths)
	if i.Resumed {
		t.write(fmt.Sprintf("  %-9s after %s", "resumed", i.Done))
	}
	if heading := i.View.Heading(); t.Live && heading != "" {
		t.write("")
		t.write(t.paint(dim, heading))
	}
}

// Tick redraws the block.
func (t *Terminal) Tick(at Tick) {
	if !t.Live {
		return
	}
	const bar = 12
	s := t.info.View.Status(at)
	full := min(bar, int(s.Share*bar))
	line := fmt.Sprintf("%9s  %s%s %3.0f %%  %s", s.Place, strings.Repeat("█", full), strings.Repeat("░", bar-full), 100*s.Share, s.Speed)
	if at.PerSecond > 0 {
		line += fmt.Sprintf("  %s left", Duration(s.Left))
	}
	t.show(append([]string{line + s.Figures}, t.chart()...))
}

func (t *Terminal) chart() []string {
	return t.info.View.Chart().lines(min(t.Width()-1, 76), chartRows)
}

// Record prints a line.
func (t *Terminal) Record(r *Record) {
	line := t.info.View.Line(r, t.Live)
	if line == "" {
		return
	}
	t.clear()
	if t.Live {
		line = fit(line, t.Width()-1) // a pipe takes it whole
	}
	t.write(line)
}

// Done prints how the run ended, where its time went, and what to try next.
func (t *Terminal) Done(e *Ending) {
	t.clear()
	if t.Live {
		for _, line := range t.chart() {
			t.write(t.paint(cyan, line))
		}
	}
	t.write("")
	var b strings.Builder
	fmt.Fprintln(&b, e.Title)
	for _, r := range append(e.Rows, [2]string{"", "tensorboard --logdir " + filepath.Dir(t.info.Dir)}) {
		fmt.Fprintf(&b, "  %-9s %s\n", r[0], r[1])
	}
	fmt.Fprint(t.Result, b.String())
}
