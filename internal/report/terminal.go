package report

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Terminal writes the events of a run for a user. If Live, it keeps a block at the bottom of the
// terminal, with the position in the run and a curve, below one line per record. Otherwise it
// writes only the lines, for pipes and logs.
type Terminal struct {
	Screen
	info *Info
}

// chartRows is the height of the curve in rows.
const chartRows = 5

// Start writes the banner: model, device, settings and folder.
func (t *Terminal) Start(i *Info) {
	t.info = i
	title, own := i.View.Banner(t.Live)
	rows := [][2]string{
		{"model", fmt.Sprintf("%s, %s parameters", i.Recipe, Thousands(int64(i.Parameters)))},
		{"device", fmt.Sprintf("%s, %s", i.Device, i.Precision)},
	}
	rows = append(append(rows, own...), [2]string{"memory", Bytes(i.Memory)}, [2]string{"results", i.Dir})
	for _, line := range t.wrapped(fmt.Sprintf("%s: %s", i.Config, title), 2) {
		t.write(t.paint(bold, line))
	}
	t.banner(rows, i.Paths)
	if i.Resumed {
		t.write(fmt.Sprintf("  %-9s after %s", "resumed", i.Done))
	}
	if heading, spare := i.View.Heading(); t.Live && heading != "" {
		t.write("")
		t.write(t.paint(dim, Narrow(heading, heading, spare, t.Width()-1)))
	}
}

// Tick redraws the block.
func (t *Terminal) Tick(at Tick) {
	if !t.Live {
		return
	}
	s := t.info.View.Status(at)
	line := []piece{{fmt.Sprintf("%9s", s.Place), 0}, {t.bar(s.Share), 6}, {fmt.Sprintf("%3.0f %%", 100*s.Share), 1}}
	if at.PerSecond > 0 {
		line = append(line, piece{s.Speed, 5}, piece{Duration(s.Left) + " left", 2})
	}
	// the recipe puts the most important figures first
	for _, f := range strings.Split(strings.TrimSpace(s.Figures), "  ") {
		line = append(line, piece{f, 4})
	}
	t.show(append([]string{assemble(line, t.Width()-1)}, t.chart()...))
}

func (t *Terminal) chart() []string {
	return t.info.View.Chart().lines(min(t.Width()-1, 76), chartRows, t.ASCII)
}

// Record writes a line.
func (t *Terminal) Record(r *Record) {
	line := t.info.View.Line(r, t.Live)
	if line == "" {
		return
	}
	t.clear()
	if heading, spare := t.info.View.Heading(); t.Live && heading != "" {
		line = Narrow(line, heading, spare, t.Width()-1)
	}
	for _, l := range t.wrapped(tied(line, t), 11) {
		t.write(strings.ReplaceAll(l, tie, " "))
	}
}

// tie is a space at which lines are not broken.
const tie = "\u00a0"

// tied replaces the space between a figure and its name by tie, if both fit into a line. Figures
// are separated by two spaces.
func tied(line string, t *Terminal) string {
	if !t.Live {
		return line
	}
	figures := strings.Split(line, "  ")
	for i, f := range figures {
		if runes(f) < t.Width()-12 {
			lead := len(f) - len(strings.TrimLeft(f, " "))
			figures[i] = f[:lead] + strings.ReplaceAll(f[lead:], " ", tie)
		}
	}
	return strings.Join(figures, "  ")
}

// Done writes the summary, the distribution of time, and what to try next.
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
	for _, r := range append(e.Rows, [2]string{"", "tensorboard --logdir " + ShellWord(filepath.Dir(t.info.Dir))}) {
		fmt.Fprintf(&b, "  %-9s %s\n", r[0], r[1])
	}
	fmt.Fprint(t.Result, b.String())
}
