package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// screen interprets the control sequences that Terminal uses, and returns the visible rows.
func screen(t *testing.T, text string, width int) []string {
	t.Helper()
	rows, at := []string{""}, 0
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexAny(text, "AJKm")
			n := 0
			for _, c := range text[2:end] {
				n = 10*n + int(c-'0')
			}
			switch text[end] {
			case 'A':
				at -= max(1, n)
			case 'J':
				rows = append(rows[:at], "")
			case 'K':
				if n == 2 {
					rows[at] = ""
				}
			}
			text = text[end+1:]
		case text[0] == '\r': // the next text replaces the line
			text = text[1:]
		case text[0] == '\n':
			if at++; at == len(rows) {
				rows = append(rows, "")
			}
			text = text[1:]
		default:
			end := strings.IndexAny(text, "\r\n\x1b")
			if end < 0 {
				end = len(text)
			}
			if rows[at] = text[:end]; utf8.RuneCountInString(rows[at]) >= width {
				t.Errorf("a line of %d columns wraps: %q", utf8.RuneCountInString(rows[at]), rows[at])
			}
			text = text[end:]
		}
	}
	return rows
}

func play(l Listener, epochs int) {
	i, v := infoOf("runs/quick-001")
	l.Start(i)
	l.Note("solving 10000 instances of 2 customers (optimum), once: 10%")
	l.Note("solving 10000 instances of 2 customers (optimum), once: 60%")
	for e := 1; e <= epochs; e++ {
		l.Tick(Tick{Updates: 100*e - 50, Total: 1000, PerSecond: 27})
		send(l, v, e)
	}
	l.Tick(Tick{Updates: 100*epochs + 50, Total: 1000, PerSecond: 27})
}

func TestScreen(t *testing.T) {
	for _, width := range []int{40, 80, 200} {
		var words, result bytes.Buffer
		term := &Terminal{Screen: Screen{Words: &words, Result: &result, Live: true, Width: func() int { return width }}}
		play(term, 4)
		rows := screen(t, words.String(), max(width, 100)) // the banner may wrap: its rows are not counted
		text := strings.Join(rows, "\n")
		if n := strings.Count(text, "/10"); n != 5 {
			t.Errorf("width %d: %d epochs on the screen, want 4 and the one under way:\n%s", width, n, text)
		}
		if n := strings.Count(text, "solving"); n != 1 {
			t.Errorf("width %d: the note stands %d times:\n%s", width, n, text)
		}
		term.Done(endingOf("runs/quick-001"))
		if end := strings.Join(screen(t, words.String(), 1000), "\n"); strings.Contains(end, "░") {
			t.Errorf("the bar stays on the screen:\n%s", end)
		}
		for _, want := range []string{"+5.50", "haul eval --checkpoint runs/quick-001", "tensorboard --logdir runs"} {
			if !strings.Contains(result.String(), want) {
				t.Errorf("the summary does not say %q:\n%s", want, result.String())
			}
		}
	}
}

func TestPipe(t *testing.T) {
	var words, result bytes.Buffer
	term := &Terminal{Screen: Screen{Words: &words, Result: &result}}
	play(term, 3)
	term.Done(endingOf("runs/quick-001"))
	if strings.Contains(words.String()+result.String(), "\x1b") {
		t.Error("a pipe was sent control sequences")
	}
	if n := strings.Count(words.String(), "\nepoch "); n != 3 {
		t.Errorf("%d lines of epochs, want 3:\n%s", n, words.String())
	}
	for _, want := range []string{"GT+RL", "594,700 parameters", "avx512", "fp32", "128 MiB", "8 shards of 16", "runs/quick-001", "cost 1.0000"} {
		if !strings.Contains(words.String(), want) {
			t.Errorf("the words do not say %q:\n%s", want, words.String())
		}
	}
}

func TestChart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 50).Draw(t, "n")
		last := n + rapid.IntRange(0, 50).Draw(t, "more")
		width, rows := rapid.IntRange(0, 120).Draw(t, "width"), rapid.IntRange(0, 8).Draw(t, "rows")
		var points []Point
		for i := range n {
			points = append(points, Point{float64(i + 1), rapid.Float64Range(0, 2).Draw(t, "y")})
		}
		lines := Chart{points, last, 0.4, "optimum"}.lines(width, rows, rapid.Bool().Draw(t, "ascii"))
		if len(lines) != 0 && len(lines) != rows {
			t.Fatalf("%d lines, want %d", len(lines), rows)
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > width {
				t.Fatalf("%d columns in %d: %q", utf8.RuneCountInString(l), width, l)
			}
		}
	})
	// A falling line: from the top left to the bottom right.
	lines := Chart{[]Point{{1, 2}, {5, 1}}, 5, 1, ""}.lines(30, 2, false)
	if len(lines) != 2 || !strings.Contains(lines[0], "2.0000 ⠉⠑⠒") || !strings.Contains(lines[1], "⠤⡤⢄⣀") {
		t.Errorf("the chart is\n%s", strings.Join(lines, "\n"))
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Thousands(0), "0"}, {Thousands(-204800), "-204,800"}, {Thousands(-100), "-100"}, {Thousands(1234567), "1,234,567"},
		{Duration(4.23), "4.2 s"}, {Duration(59.6), "1:00"}, {Duration(3599.4), "59:59"}, {Duration(7384), "2:03:04"}, {Duration(-1), "?"},
		{Bytes(512), "512 B"}, {Bytes(108 << 20), "108 MiB"}, {Bytes(3 << 29), "1.5 GiB"},
		{Operations(6.63e9), "6.63 GFLOP"}, {Operations(2e12), "2 TFLOP"}, {Operations(5e6), "5 MFLOP"},
		{Plural(1, "step"), "1 step"}, {Plural(2000, "step"), "2,000 steps"}, {GapText(nil), "–"}, {CostText(nil), "–"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestProgressIsABarOrALine(t *testing.T) {
	for _, c := range []struct {
		live bool
		want string
	}{
		{true, "compiling ######------ 2 of 4\x1b[K\n\r\x1b[1Acompiling ############ 4 of 4\x1b[K\n"},
		{false, "compiling: 4\n"},
	} {
		var b strings.Builder
		s := Screen{Words: &b, Live: c.live, ASCII: true, Width: func() int { return 80 }}
		send := s.Progress("compiling")
		send(2, 4)
		send(4, 4)
		if !strings.HasPrefix(b.String(), c.want) || !c.live && b.String() != c.want {
			t.Errorf("live %v: %q, want %q", c.live, b.String(), c.want)
		}
	}
}
