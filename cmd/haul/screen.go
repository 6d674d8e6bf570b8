package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"haul/internal/report"
)

// What a reader could break: only a screen gets its lines broken. A pipe gets whole lines, and
// JSON is never broken.

// screenWriter breaks lines of results at words, where the terminal would break them within one.
// What goes on hangs below the text that it goes on with.
type screenWriter struct {
	to    io.Writer
	width func() int
	rest  []byte // of a line that has not ended
}

func (s *screenWriter) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	end := bytes.LastIndexByte(s.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var out strings.Builder
	for line := range strings.Lines(string(s.rest[:end])) {
		out.WriteString(breakLine(strings.TrimRight(line, "\n"), s.width()-1) + "\n")
	}
	s.rest = append(s.rest[:0], s.rest[end:]...)
	_, err := io.WriteString(s.to, out.String())
	return len(p), err
}

// flush writes what has no end.
func (s *screenWriter) flush() error {
	_, err := s.to.Write(s.rest)
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
