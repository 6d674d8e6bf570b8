package report

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWrapKeepsWords: all words remain uncut, and every line has as many words as fit.
func TestWrapKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z×]{1,12}`), 1, 20).Draw(t, "words")
		line := "  " + strings.Join(words, " ")
		width, indent := rapid.IntRange(20, 60).Draw(t, "width"), rapid.IntRange(0, 6).Draw(t, "indent")
		lines := Wrap(line, width, indent)
		if got := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); got != strings.Join(words, " ") {
			t.Errorf("%q became %q", words, lines)
		}
		for i, l := range lines {
			if runes(l) > width {
				t.Errorf("line of %d, width %d: %q", runes(l), width, l)
			}
			if i > 0 && !strings.HasPrefix(l, strings.Repeat(" ", indent)) {
				t.Errorf("not indented: %q", l)
			}
		}
	})
}

// TestTheLiveLineKeepsWhatMatters. Before, a terminal of 80 columns cut the training figures, and
// one of 60 columns cut the remaining time.
func TestTheLiveLineKeepsWhatMatters(t *testing.T) {
	i, v := infoOf("runs/quick-001")
	for width, want := range map[int][]string{
		200: {"1/10", "50 %", "3,500 inst/s", "12 s left", "train 0.5000", "val 0.4000", "gap +5.00 %", "█"},
		80:  {"1/10", "50 %", "12 s left", "train 0.5000", "val 0.4000", "gap +5.00 %"},
		60:  {"1/10", "50 %", "12 s left", "train 0.5000", "val 0.4000"},
		30:  {"1/10", "50 %", "12 s left"},
	} {
		var words bytes.Buffer
		term := &Terminal{Screen: Screen{Words: &words, Live: true, Width: func() int { return width }}}
		term.Start(i)
		send(term, v, 1)
		words.Reset()
		term.Tick(Tick{Updates: 50, Total: 1000, PerSecond: 27})
		line, _, _ := strings.Cut(words.String(), "\x1b[K")
		line = line[strings.LastIndexAny(line, "A\r")+1:]
		for _, w := range want {
			if !strings.Contains(line, w) {
				t.Errorf("width %d: no %q in %q", width, w, line)
			}
		}
		if n := runes(line); n >= width {
			t.Errorf("width %d: a line of %d: %q", width, n, line)
		}
	}
}

// TestTheBannerWrapsAtWords, and so do notes, and records without columns. A note of several rows
// is replaced whole.
func TestTheBannerWrapsAtWords(t *testing.T) {
	for _, width := range []int{60, 80} {
		var words bytes.Buffer
		term := &Terminal{Screen: Screen{Words: &words, Result: &words, Live: true, Width: func() int { return width }}}
		i, v := infoOf("runs/quick-001")
		i.Paths = []string{strings.Repeat("kernels ", 30)}
		term.Start(i)
		term.Note(strings.Repeat("long work ", 10) + ": 10%")
		term.Note(strings.Repeat("long work ", 10) + ": 60%")
		send(term, v, 1)
		rows := screen(t, words.String(), width+1)
		text := strings.Join(rows, "\n")
		if strings.Contains(text, "10%") || !strings.Contains(text, "60%") || strings.Count(text, "long work") != 10 {
			t.Errorf("width %d: the note is not replaced:\n%s", width, text)
		}
		for _, r := range rows {
			if word := strings.TrimSpace(r); strings.HasPrefix(word, "ernels") || runes(r) >= width {
				t.Errorf("width %d: %q", width, r)
			}
		}
	}
}

// TestPlainLocaleGetsPlainCharacters: with LC_ALL=C neither bars nor braille characters are used.
func TestPlainLocaleGetsPlainCharacters(t *testing.T) {
	var words, result bytes.Buffer
	term := &Terminal{Screen: Screen{Words: &words, Result: &result, Live: true, ASCII: true, Width: func() int { return 100 }}}
	play(term, 4)
	term.Done(endingOf("runs/quick-001"))
	if !strings.Contains(words.String(), "#") || !strings.Contains(words.String(), ":") {
		t.Errorf("no bar or no curve:\n%s", words.String())
	}
	for _, r := range words.String() {
		if r >= 0x2500 && r < 0x2900 { // boxes, blocks and braille
			t.Fatalf("%q in\n%s", r, words.String())
		}
	}
}

// TestColumnsLeaveANarrowScreenWhole: no column is cut. The spare columns are removed first, in
// their order, then columns from the right. A mark stays with its column.
func TestColumnsLeaveANarrowScreenWhole(t *testing.T) {
	heading, line := "    epoch    train  baseline        lr    inst/s", "      1/3   0.6446    0.5773*  0.00015       463"
	for width, want := range map[int][2]string{
		80: {heading, line},
		50: {heading, line},
		45: {"    epoch    train  baseline    inst/s", "      1/3   0.6446    0.5773*      463"},
		30: {"    epoch    train    inst/s", "      1/3   0.6446       463"},
		20: {"    epoch    train", "      1/3   0.6446"},
		10: {"    epoch", "      1/3"},
		4:  {"    ", "    "},
	} {
		spare := []string{"lr", "baseline"}
		if got := [2]string{Narrow(heading, heading, spare, width), Narrow(line, heading, spare, width)}; got != want {
			t.Errorf("%d: %q, want %q", width, got, want)
		}
	}
}

// TestNothingHasNoMinus: a gap that rounds to zero has no minus sign.
func TestNothingHasNoMinus(t *testing.T) {
	for want, x := range map[string]float64{"+0.00": -1e-9, "+1.50": 1.5, "-0.01": -0.006, "+0.01": 0.006, "-20.00": -20} {
		if got := Signed(x, 2); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
	tiny := -1e-12
	if got := GapText(&tiny); got != "+0.00 %" {
		t.Errorf("a gap of %g is told as %s", tiny, got)
	}
}
