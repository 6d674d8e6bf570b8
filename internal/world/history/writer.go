package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"haul/internal/world/grid"
)

// Writer writes a history file goal by goal, in any order and from any goroutine. The file gets its
// name in Close, when every goal is written and flushed; until then it is a temporary file in the
// same folder.
type Writer struct {
	path      string
	file      *os.File // nil after Close or Discard
	validator *validator

	mu      sync.Mutex // guards written and the measured fields of block
	block   block
	written []bool
}

// Create begins a history file at path.
func Create(path string, h Header) (*Writer, error) {
	if err := h.Check(); err != nil {
		return nil, fmt.Errorf("history %s: %w", path, err)
	}
	f, err := createTemporary(path)
	if err != nil {
		return nil, fmt.Errorf("create history %s: %w", path, bare(err))
	}
	n := len(h.Goals)
	w := &Writer{path: path, file: f, validator: newValidator(h.Room), written: make([]bool, n)}
	w.block = block{Header: h, Optimal: make([]float64, n), Curves: make([][]float64, n), Checksums: make([]uint32, n)}
	for i, g := range h.Goals {
		w.block.Optimal[i] = h.Room.Optimal(g)
	}
	return w, nil
}

// WriteGoal writes the streams of the goal with this index in sequence: transition t of stream s is
// element s·Steps+t. It refuses streams that break the room's rules, and computes the learner's
// curve.
func (w *Writer) WriteGoal(goal int, steps []grid.Step) error {
	h := &w.block.Header
	if goal < 0 || goal >= len(h.Goals) || len(steps) != h.Streams*h.Steps {
		panic("history: WriteGoal wants a goal of the header and streams × steps transitions")
	}
	data := encode(steps)
	if err := w.validator.validateGoal(h, goal, data); err != nil {
		return fmt.Errorf("write history %s: %w", w.path, err)
	}
	if _, err := w.file.WriteAt(data, preambleBytes+int64(goal)*h.goalBytes()); err != nil {
		return fmt.Errorf("write history %s: %w", w.path, bare(err))
	}
	learned, sum := curve(h.Room, data, h.Streams), checksum(data)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.block.Curves[goal], w.block.Checksums[goal], w.written[goal] = learned, sum, true
	return nil
}

// Close completes the file and gives it its name. If a goal is missing or a write fails, no file
// appears.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	if err := w.finish(); err != nil {
		w.Discard()
		return fmt.Errorf("write history %s: %w", w.path, bare(err))
	}
	return nil
}

func (w *Writer) finish() error {
	missing := 0
	for _, done := range w.written {
		if !done {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d goals were never written", missing, len(w.written))
	}
	text, err := json.Marshal(w.block)
	if err != nil {
		return err
	}
	p := preamble{payload: w.block.goalBytes() * int64(len(w.written)), json: int64(len(text)), jsonSum: checksum(text), format: formatOf(w.block.Room)}
	if _, err := w.file.WriteAt(text, preambleBytes+p.payload); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(p.bytes(), 0); err != nil {
		return err
	}
	if err := durable.sync(w.file); err != nil {
		return err
	}
	temp := w.file.Name()
	if err := w.file.Close(); err != nil {
		return err
	}
	if err := durable.rename(temp, w.path); err != nil {
		return err
	}
	w.file = nil
	return durable.folder(filepath.Dir(w.path))
}

// Discard removes what was written. After Close it does nothing, so it may be deferred.
func (w *Writer) Discard() {
	if w.file == nil {
		return
	}
	w.file.Close() // only the removal matters
	os.Remove(w.file.Name())
	w.file = nil
}

// bare removes the path from an error of package os.
func bare(err error) error {
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// durable holds the calls that flush content and names to the disk. Tests replace them.
var durable = struct {
	sync   func(*os.File) error
	rename func(from, to string) error
	folder func(path string) error
}{(*os.File).Sync, os.Rename, syncFolder}

// syncFolder flushes a folder's names to the disk, if the system supports it.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = d.Sync() // some file systems do not support it and do not need it
	return d.Close()
}
