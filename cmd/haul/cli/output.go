package cli

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

// EmitWith prints an object with more keys in front; those that are empty are left out.
func (a *App) EmitWith(more map[string]any, object any) error {
	all := map[string]any{}
	for k, v := range more {
		if v != "" {
			all[k] = v
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(text, &own); err != nil {
		return err
	}
	for k, v := range own {
		all[k] = v
	}
	return a.Emit(all)
}

// Remark is a word on long work for whoever watches; a pipe does not.
func (a *App) Remark(text string) {
	if IsTerminal(a.Stderr) {
		fmt.Fprintln(a.Stderr, breakLine(text, a.Width()-1))
	}
}

// Emit prints one JSON object on a line of its own.
func (a *App) Emit(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(append(line, '\n'))
	return err
}

// Table prints rows of tab-separated cells, aligned.
func (a *App) Table(write func(w io.Writer)) error {
	var buf bytes.Buffer
	t := tabwriter.NewWriter(&buf, 0, 0, 2, ' ', 0)
	write(t)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := a.Stdout.Write(buf.Bytes())
	return err
}

// Bold marks a headline on a terminal; NO_COLOR and pipes get plain text.
func (a *App) Bold(s string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !IsTerminal(a.Stdout) {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// ResultWriter keeps the first error of standard output, so that a verb cannot end well whose
// results reached nobody.
type ResultWriter struct {
	To  io.Writer
	mu  sync.Mutex
	err error
}

func (r *ResultWriter) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.To.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

func (r *ResultWriter) Failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// underneath is where a writer of ours writes to.
func underneath(w io.Writer) io.Writer {
	for {
		switch v := w.(type) {
		case *ScreenWriter:
			w = v.To
		case *ResultWriter:
			w = v.To
		default:
			return w
		}
	}
}

func IsTerminal(w io.Writer) bool {
	f, ok := underneath(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Bar shows progress on a terminal; in a pipe it stays silent.
type Bar struct{ Inner *progressbar.ProgressBar }

func (a *App) NewBar(total int, what string) *Bar {
	if !IsTerminal(a.Stderr) {
		return &Bar{}
	}
	theme := progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: "", BarEnd: ""}
	if !unicodeLocale() {
		theme.Saucer, theme.SaucerPadding = "#", "-"
	}
	return &Bar{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(a.Stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(32),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(theme))}
}

// Set moves the bar to done. A failure to draw it is no reason to fail the work.
func (b *Bar) Set(done int) {
	if b.Inner != nil {
		_ = b.Inner.Set(done)
	}
}

// Of moves the bar to done of a total that is known only now.
func (b *Bar) Of(done, total int) {
	if b.Inner != nil {
		b.Inner.ChangeMax(total)
	}
	b.Set(done)
}

// End takes the bar off the screen, so that what follows starts on a clean line. Ending twice is
// harmless: verbs defer it for their errors and call it before their results.
func (b *Bar) End() {
	if b.Inner != nil {
		_ = b.Inner.Clear()
		b.Inner = nil
	}
}

// WriteFile writes a result whole, or leaves what was there before: through a file beside it that
// takes its name when all of it is on the disk. What is no regular file (/dev/stdout, a pipe) is
// written to as it is.
func WriteFile(path string, write func(w io.Writer) error) error {
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

// Percent formats a fraction with its sign, as gaps are read.
func Percent(fraction float64) string { return report.Signed(100*fraction, 2) + " %" }

// Gap is how far a value lies above the best known one, as a fraction; nil where none is known.
func Gap(value, bestKnown float64) *float64 {
	if bestKnown == 0 {
		return nil
	}
	g := value/bestKnown - 1
	return &g
}

// RefuseOverwrite keeps a result from replacing a file that is there, unless --force says so, and
// tells of a folder that is missing or takes no files before the work and not after it.
func RefuseOverwrite(force bool, paths ...string) error {
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
		if err := RefuseExisting(force, path); err != nil {
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

// Exists says whether a file can be seen.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// RefuseExisting keeps a result from replacing a file that is there, unless --force says so.
func RefuseExisting(force bool, path string) error {
	if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && !force {
		return fmt.Errorf("%s is there already: give another name, or --force to replace it", path)
	}
	return nil
}

// CheckReplaceable refuses a path that cannot be written, before the work whose result goes there.
// A file that exists is replaced.
func CheckReplaceable(path string) error { return CheckWritable(true, path) }

// CheckWritable is checkReplaceable, but a file that exists is replaced only with force.
func CheckWritable(force bool, path string) error {
	if path == "" || path == StandardOutput {
		return nil
	}
	return RefuseOverwrite(force, path)
}
