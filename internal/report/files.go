package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"haul/internal/draw"
)

// files tracks the failures of the files of a run folder. Each file is noted once. What is still
// missing at the end is one error.
type files struct {
	dir    string
	last   string           // path of the last checkpoint
	ended  bool             // the run has ended
	note   func(string)     // receives a note once per file that fails
	broken map[string]error // by file: why it was not written at all
	noted  map[string]bool
}

func newFiles(note func(string)) files {
	return files{note: note, broken: map[string]error{}, noted: map[string]bool{}}
}

func (p *files) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

// fail notes an error once per file. missing will return it if final is true.
func (p *files) fail(name string, err error, final bool) {
	if err == nil {
		return
	}
	if final {
		p.broken[name] = err
	}
	if !p.noted[name] {
		p.noted[name] = true
		what := "; training goes on"
		if p.ended {
			what = ""
		}
		p.note(fmt.Sprintf("%s: %v%s", p.path(name), err, what))
	}
}

// missing returns one error that names what the files lack, or nil.
func (p *files) missing() error {
	var errs []error
	for name, err := range p.broken {
		errs = append(errs, fmt.Errorf("%s: %w", p.path(name), err))
	}
	if len(errs) > 0 {
		state := "the run's checkpoints are whole, its record is not"
		if _, err := os.Stat(p.last); err != nil {
			state = "the run's folder was changed while it ran: neither its record nor its checkpoints are whole"
		}
		return fmt.Errorf("%s: %w", state, errors.Join(errs...))
	}
	return nil
}

// picture writes a picture completely or not at all.
func (p *files) picture(base string, format draw.Format, paint func(io.Writer) error) {
	name := base + "." + string(format)
	p.fail(name, p.whole(name, paint), true)
}

// whole writes a file completely or not at all.
func (p *files) whole(name string, write func(io.Writer) error) error {
	temp := p.path(name) + ".tmp"
	err := writeTo(temp, write)
	if err == nil {
		err = os.Rename(temp, p.path(name))
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

func writeTo(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
