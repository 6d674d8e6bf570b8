package cli

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"

	"haul/internal/report"
)

// What a reader could break: only a screen gets its lines broken. A pipe gets whole lines, and
// JSON is never broken.

// ScreenWriter breaks lines of results at words, where the terminal would break them within one.
// What goes on hangs below the text that it goes on with.
type ScreenWriter struct {
	To    io.Writer
	Width func() int
	rest  []byte // of a line that has not ended
}

func (s *ScreenWriter) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var out strings.Builder
	for line := range strings.Lines(string(s.rest[:end])) {
		out.WriteString(breakLine(strings.TrimRight(line, "\n"), s.Width()-1) + "\n")
	}
	s.rest = append(s.rest[:0], s.rest[end:]...)
	_, err := io.WriteString(s.To, out.String())
	return len(p), err
}

// Flush writes what has no end.
func (s *ScreenWriter) Flush() error {
	_, err := s.To.Write(s.rest)
	s.rest = nil
	return err
}

// hangs is what stands before the text of a line: blanks and a mark, or a name and the blanks after
// it.
var hangs = regexp.MustCompile(`^( *(?:[-*] |\d+\. )|.*?\S {2,}| +)`)

// breakLine breaks a line that is wider than the screen; marks of colour take no room.
func breakLine(line string, width int) string {
	plain := report.Plain(line)
	if len([]rune(plain)) <= width || strings.HasPrefix(plain, "{") || strings.HasPrefix(plain, "[") {
		return line
	}
	hang := len([]rune(hangs.FindString(plain)))
	if hang == 0 || hang > width/2 {
		hang = 2
	}
	return strings.Join(report.Wrap(line, width, hang), "\n")
}

// NewScreen is the listener for people. Results share standard output with nothing else, so with
// JSON there they join the words.
func (a *App) NewScreen(asJSON bool) report.Screen {
	live := IsTerminal(a.Stderr) && os.Getenv("TERM") != "dumb"
	t := report.Screen{Words: a.Stderr, Result: a.Stdout, Live: live, Colour: live && os.Getenv("NO_COLOR") == "", Width: a.Width, ASCII: !unicodeLocale()}
	if asJSON {
		t.Result = a.Stderr
	}
	return t
}

// Width is the screen's, 80 where it does not tell.
func (a *App) Width() int {
	if a.Columns > 0 {
		return a.Columns
	}
	return WidthOf(a.Stderr)
}

func WidthOf(w io.Writer) int {
	if f, ok := underneath(w).(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}
