package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"haul/internal/draw"
)

// files are the files of a run folder as far as their failures go: each is noted once, and what is
// still missing at the end is one error.
type files struct {
	dir    string
	last   string           // the checkpoint
	ended  bool             // the run has
	note   func(string)     // told once about each file that fails
	broken map[string]error // by file: what could not be written at all
	noted  map[string]bool
}

func newFiles(note func(string)) files {
	return files{note: note, broken: map[string]error{}, noted: map[string]bool{}}
}

func (p *files) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

// fail notes an error once per file; a final one is what missing will return.
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

// missing is what the files lack, in one error.
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

// picture writes one whole or not at all.
func (p *files) picture(base string, format draw.Format, paint func(io.Writer) error) {
	name := base + "." + string(format)
	p.fail(name, p.whole(name, paint), true)
}

// whole writes a file whole or not at all.
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
