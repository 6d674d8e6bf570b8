package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
)

// The reader holds one window of the file and parses events in it in place. An event that extends
// beyond the window is parsed again after more of the file has been read. So parsing an event must
// have no effect before its closing brace has been seen.

const (
	windowSize = 1 << 20
	// maxEvent limits the size of one event. Real events reach about 100 kB, for operators with
	// thousands of tensors.
	maxEvent = 64 << 20
)

// Read reads a Chrome trace as PyTorch's and JAX's profilers write it: an object with traceEvents,
// or the bare array of events; plain or gzip.
func Read(r io.Reader) (*Trace, error) { return readWithin(r, NewBudget(math.MaxInt64, nil)) }

// readWithin is Read of a trace that takes no more than what is left.
func readWithin(r io.Reader, left *Budget) (*Trace, error) {
	w := &source{r: r, buf: make([]byte, 0, windowSize), build: newBuilder(left)}
	if err := w.fill(0); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(w.buf, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(w.buf)), r))
		if err != nil {
			return nil, errors.New("the gzip header is damaged or cut off: copy or record it again")
		}
		w.r = z
		w.r = &metered{z, left}
		w.buf, w.eof, w.packed = w.buf[:0], false, true
	}
	if err := w.document(); err != nil && !(errors.Is(err, errCut) && w.build.Events >= cutEvents) {
		return nil, err
	} else if err != nil {
		w.build.cut = true // the events before the end are complete
	}
	if w.build.Events == 0 {
		return nil, errors.New("the trace holds no events: was the profiler stopped before it recorded a step?")
	}
	return w.build.settle(), nil
}

// source is the window: buf[pos:] has not been parsed.
type source struct {
	r      io.Reader
	buf    []byte
	pos    int
	before int64 // bytes of the file before the window
	eof    bool
	packed bool
	torn   bool // the compressed data ends too early
	build  *builder
	ev     event
}

// fill drops the bytes before keep and reads more of the file after the rest. It grows the window
// if an event does not fit.
func (w *source) fill(keep int) error {
	n := copy(w.buf[:cap(w.buf)], w.buf[keep:])
	w.before += int64(keep)
	w.buf, w.pos = w.buf[:n], w.pos-keep
	if n == cap(w.buf) {
		if n >= maxEvent {
			return fmt.Errorf("one event at byte %d is longer than %d MB: this is no profiler's trace", w.before, maxEvent>>20)
		}
		w.buf = append(make([]byte, 0, 2*cap(w.buf)), w.buf...)
	}
	for len(w.buf) < cap(w.buf) && !w.eof {
		n, err := w.r.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		switch {
		case err == io.EOF:
			w.eof = true
		case errors.Is(err, io.ErrUnexpectedEOF):
			w.eof, w.torn = true, true // the data before it is parsed first
		case err != nil:
			return w.readError(err)
		}
	}
	return nil
}

func (w *source) readError(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	if !w.packed && errors.Is(err, io.ErrUnexpectedEOF) { // of any compression
		return &cutError{fmt.Sprintf("the file is cut off after %d events: copy or record it again", w.build.Events)}
	}
	if !w.packed {
		return fmt.Errorf("cannot read on after %d events: %w", w.build.Events, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &cutError{fmt.Sprintf("the gzip file is cut off after %d events: copy or record it again", w.build.Events)}
	}
	return fmt.Errorf("the gzip file is damaged after %d events (%w): copy or record it again", w.build.Events, err)
}

// retry runs read on the window until it succeeds, and reads more of the file after each failure.
// The position changes only on success.
func (w *source) retry(read func(b []byte, i int) (int, error)) error {
	for {
		i, err := read(w.buf, w.pos)
		switch {
		case err == nil:
			w.pos = i
			return nil
		case err != errShort:
			return fmt.Errorf("not a trace: no JSON at byte %d", w.before+int64(i))
		case w.eof:
			return w.short()
		}
		if err := w.fill(w.pos); err != nil {
			return err
		}
	}
}

func (w *source) short() error {
	if w.torn {
		return w.readError(io.ErrUnexpectedEOF)
	}
	if w.before == 0 && space(w.buf, 0) == len(w.buf) {
		return errors.New("the file is empty")
	}
	return &cutError{fmt.Sprintf("the JSON is cut off at byte %d after %d events: copy or record it again", w.before+int64(len(w.buf)), w.build.Events)}
}

// cutEvents is the number of complete events above which a truncated file is analysed anyway.
const cutEvents = 100

// errCut is the error that every cutError wraps.
var errCut = errors.New("the file is cut off")

// cutError reports the position at which a file ends too early.
type cutError struct{ text string }

func (e *cutError) Error() string        { return e.text }
func (e *cutError) Is(target error) bool { return target == errCut }

// next moves to the next byte that is not white space and returns it.
func (w *source) next() (byte, error) {
	var c byte
	err := w.retry(func(b []byte, i int) (int, error) {
		if i = space(b, i); i >= len(b) {
			return i, errShort
		}
		c = b[i]
		return i, nil
	})
	return c, err
}

// document reads the whole file. It ignores everything after the last bracket.
func (w *source) document() error {
	if len(w.buf) == 0 && !w.eof {
		if err := w.fill(0); err != nil {
			return err
		}
	}
	if bytes.HasPrefix(w.buf[w.pos:], []byte("\ufeff")) { // a byte order mark
		w.pos += len("\ufeff")
	}
	c, err := w.next()
	if err != nil {
		return err
	}
	switch c {
	case '[':
		return w.events(true)
	case '{':
		return w.object()
	}
	return fmt.Errorf("not a trace: it starts with %q where JSON starts with { or [", w.buf[w.pos:min(w.pos+8, len(w.buf))])
}

func (w *source) object() error {
	seen := false
	w.pos++
	for {
		c, err := w.next()
		if err != nil {
			return err
		}
		switch c {
		case '}':
			if !seen {
				return errors.New("this is JSON but no Chrome trace: it has no traceEvents")
			}
			return nil
		case ',':
			w.pos++
			continue
		case '"':
		default:
			return fmt.Errorf("not a trace: no JSON at byte %d", w.before+int64(w.pos))
		}
		key, err := w.key()
		if err != nil {
			return err
		}
		c, err = w.next()
		if err != nil {
			return err
		}
		switch {
		case key == "traceEvents" && c == '[':
			seen = true
			err = w.events(false)
		case key == "deviceProperties" && c == '[':
			err = w.retry(w.build.devices)
		case key == "distributedInfo" && c == '{':
			err = w.retry(w.build.distributed)
		case key == rocprofKey && c == '[':
			err := w.build.rocprof(io.MultiReader(bytes.NewReader(w.buf[w.pos:]), w.r))
			w.eof, w.pos = true, len(w.buf)
			return err
		case key == "haul" && c == '{':
			w.build.Own = true
			err = w.retry(skip)
		default:
			err = w.retry(skip)
		}
		if err != nil {
			return err
		}
	}
}

// key reads a key and its colon.
func (w *source) key() (string, error) {
	var key string
	err := w.retry(func(b []byte, i int) (int, error) {
		k, i, err := text(b, i)
		if err != nil {
			return i, err
		}
		if i = space(b, i); i >= len(b) {
			return i, errShort
		}
		if b[i] != ':' {
			return i, errSyntax
		}
		key = string(k)
		return i + 1, nil
	})
	return key, err
}

// events reads the array at the position, event by event. With open, the array is the whole file
// and may lack its end: the format allows this for programs that were killed while writing, if the
// last event is complete.
func (w *source) events(open bool) error {
	w.pos++
	for {
		c, err := w.next()
		if open && w.eof && w.build.Events > 0 && space(w.buf, w.pos) == len(w.buf) {
			return nil
		}
		if err != nil {
			return err
		}
		switch c {
		case ']':
			w.pos++
			w.build.closed = true
			return nil
		case ',':
			w.pos++
		case '{':
			if err := w.retry(w.ev.parse); err != nil {
				return err
			}
			if w.build.add(&w.ev); w.build.over != nil {
				return w.build.over
			}
		default:
			if err := w.retry(skip); err != nil {
				return err
			}
		}
	}
}

// devices reads the list of GPUs before the events.
func (t *builder) devices(b []byte, i int) (int, error) {
	var found []GPUModel
	for i = space(b, i+1); ; i = space(b, i) {
		if i >= len(b) {
			return i, errShort
		}
		switch b[i] {
		case ']':
			t.GPUModels = found
			return i + 1, nil
		case ',':
			i++
			continue
		case '{':
		default:
			return i, errSyntax
		}
		var c GPUModel
		next, err := eachKey(b, i, func(key []byte, i int) (int, error) {
			w, i, err := scalar(b, i)
			switch string(key) {
			case "name":
				c.Name = string(w)
			case "computeMajor":
				c.Major = int(count(w))
			case "computeMinor":
				c.Minor = int(count(w))
			case "numSms":
				c.Processors = int(count(w))
			}
			return i, err
		})
		if err != nil {
			return next, err
		}
		found, i = append(found, c), next
	}
}

// distributed reads the rank and the number of ranks.
func (t *builder) distributed(b []byte, i int) (int, error) {
	var j job
	next, err := eachKey(b, i, func(key []byte, i int) (int, error) {
		w, i, err := scalar(b, i)
		switch string(key) {
		case "rank":
			j.Rank, j.Known = int(count(w)), true
		case "world_size":
			j.World = int(count(w))
		case "backend":
			j.backend = string(w)
		}
		return i, err
	})
	if err == nil {
		t.Job = j
	}
	return next, err
}
