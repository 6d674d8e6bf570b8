package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"haul/internal/report"
)

// emit prints one JSON object on a line of its own.
func (a *app) emit(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(append(line, '\n'))
	return err
}

// table prints rows of tab-separated cells, aligned.
func (a *app) table(write func(w io.Writer)) error {
	var buf bytes.Buffer
	t := tabwriter.NewWriter(&buf, 0, 0, 2, ' ', 0)
	write(t)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := a.stdout.Write(buf.Bytes())
	return err
}

// bold marks a headline on a terminal; NO_COLOR and pipes get plain text.
func (a *app) bold(s string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(a.stdout) {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// resultWriter keeps the first error of standard output, so that a verb cannot end well whose
// results reached nobody.
type resultWriter struct {
	to  io.Writer
	mu  sync.Mutex
	err error
}

func (r *resultWriter) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.to.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

func (r *resultWriter) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// underneath is where a writer of ours writes to.
func underneath(w io.Writer) io.Writer {
	for {
		switch v := w.(type) {
		case *screenWriter:
			w = v.to
		case *resultWriter:
			w = v.to
		default:
			return w
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := underneath(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// bar shows progress on a terminal; in a pipe it stays silent.
type bar struct{ inner *progressbar.ProgressBar }

func (a *app) newBar(total int, what string) *bar {
	if !isTerminal(a.stderr) {
		return &bar{}
	}
	theme := progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: "", BarEnd: ""}
	if !unicodeLocale() {
		theme.Saucer, theme.SaucerPadding = "#", "-"
	}
	return &bar{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(32),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(theme))}
}

// set moves the bar to done. A failure to draw it is no reason to fail the work.
func (b *bar) set(done int) {
	if b.inner != nil {
		_ = b.inner.Set(done)
	}
}

// of moves the bar to done of a total that is known only now.
func (b *bar) of(done, total int) {
	if b.inner != nil {
		b.inner.ChangeMax(total)
	}
	b.set(done)
}

// end takes the bar off the screen, so that what follows starts on a clean line. Ending twice is
// harmless: verbs defer it for their errors and call it before their results.
func (b *bar) end() {
	if b.inner != nil {
		_ = b.inner.Clear()
		b.inner = nil
	}
}

// writeFile writes a result whole, or leaves what was there before: through a file beside it that
// takes its name when all of it is on the disk. What is no regular file (/dev/stdout, a pipe) is
// written to as it is.
func writeFile(path string, write func(w io.Writer) error) error {
	var buf bytes.Buffer
	if err := write(&buf); err != nil {
		return err
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
			return fmt.Errorf("cannot write: %w", err)
		}
		return nil
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // a link stays one
	}
	if err := replaceFile(path, buf.Bytes()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bareError(err))
	}
	return nil
}

// bareError drops the temporary file's name, which a user never gave.
func bareError(err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		return p.Err
	}
	if l := new(os.LinkError); errors.As(err, &l) {
		return l.Err
	}
	return err
}

// percent formats a fraction with its sign, as gaps are read.
func percent(fraction float64) string { return report.Signed(100*fraction, 2) + " %" }

// refuseOverwrite keeps a result from replacing a file that is there, unless --force says so, and
// tells of a folder that is missing or takes no files before the work and not after it.
func refuseOverwrite(force bool, paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fmt.Errorf("cannot write %s: %w", path, bareError(err))
		}
		st, err := os.Stat(path)
		switch {
		case err == nil && st.IsDir():
			return fmt.Errorf("cannot write %s: it is a folder", path)
		case err == nil && !st.Mode().IsRegular():
			continue // a pipe or a device takes what comes
		}
		if err := refuseExisting(force, path); err != nil {
			return err
		}
		// As the file will be written, which leaves nothing where a kill comes in between.
		probe, named, err := openUnnamed(path)
		if err == nil {
			err = probe.Close()
		}
		if err == nil && named {
			err = os.Remove(probe.Name())
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", path, bareError(err))
		}
	}
	return nil
}
