package doctor

import (
	"hash/maphash"
	"strconv"
)

// event is one entry of the trace while it is being read. Its byte slices point into the reader's
// buffer: whoever keeps one past the next event must copy it.
type event struct {
	phase    byte
	cat      category
	name     []byte
	pid, tid []byte
	start    int64 // ns
	dur      int64 // ns
	hasStart bool
	hasDur   bool
	args     arguments
}

// arguments are the few of an event's that a rule uses.
type arguments struct {
	correlation uint32
	bytes       uint32
	sequence    uint32
	blocks      float32 // thread blocks per multiprocessor, negative when not told
	inputs      uint64  // hash of shapes and scalar inputs, 0 when not recorded
}

// category says which records an event becomes.
type category uint8

const (
	catOther category = iota
	catOp
	catCall
	catKernel
	catCopy
	catSet
	catNote // an annotation: a profiler step, the data loader
)

// categoryOf knows the spelling of every PyTorch from 1.13 on, and the older one beside it.
func categoryOf(s []byte) category {
	switch string(s) {
	case "cpu_op", "Operator":
		return catOp
	case "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "hip_driver":
		return catCall
	case "kernel", "Kernel":
		return catKernel
	case "gpu_memcpy", "Memcpy":
		return catCopy
	case "gpu_memset", "Memset":
		return catSet
	case "user_annotation":
		return catNote
	}
	return catOther
}

var inputSeed = maphash.MakeSeed()

// parse reads the event whose opening brace is at i. An event of a kind that nobody uses is passed
// over as soon as that is known.
func (e *event) parse(b []byte, i int) (int, error) {
	*e = event{}
	e.args.blocks = -1
	known := false
	return eachKey(b, i, func(key []byte, i int) (int, error) {
		var err error
		var w []byte
		switch string(key) {
		case "ph":
			w, i, err = scalar(b, i)
			if len(w) > 0 {
				e.phase = w[0]
			}
		case "cat":
			w, i, err = scalar(b, i)
			e.cat, known = categoryOf(w), true
		case "name":
			e.name, i, err = scalar(b, i)
		case "pid":
			e.pid, i, err = scalar(b, i)
		case "tid":
			e.tid, i, err = scalar(b, i)
		case "ts":
			w, i, err = scalar(b, i)
			e.start, e.hasStart = nanoseconds(w)
		case "dur":
			w, i, err = scalar(b, i)
			e.dur, e.hasDur = nanoseconds(w)
		case "args":
			if (known && e.cat == catOther) || (e.phase != 0 && e.phase != 'X') || i >= len(b) || b[i] != '{' {
				return skip(b, i)
			}
			return e.args.parse(b, i)
		default:
			return skip(b, i)
		}
		return i, err
	})
}

func (a *arguments) parse(b []byte, i int) (int, error) {
	return eachKey(b, i, func(key []byte, i int) (int, error) {
		var err error
		var w []byte
		switch string(key) {
		case "correlation":
			w, i, err = scalar(b, i)
			a.correlation = count(w)
		case "bytes", "Bytes":
			w, i, err = scalar(b, i)
			a.bytes = count(w)
		case "Sequence number":
			w, i, err = scalar(b, i)
			a.sequence = count(w)
		case "blocks per SM":
			if w, i, err = scalar(b, i); err == nil {
				if f, bad := strconv.ParseFloat(string(w), 32); bad == nil && f >= 0 {
					a.blocks = float32(f)
				}
			}
		case "Input Dims", "Input dims", "Concrete Inputs":
			start := i
			if i, err = skip(b, i); err == nil {
				a.inputs = a.inputs*31 + maphash.Bytes(inputSeed, b[start:i])
			}
		default:
			return skip(b, i)
		}
		return i, err
	})
}

// eachKey walks the object that opens at i. The value's reader is handed the position of its first
// byte and returns the one behind its last.
func eachKey(b []byte, i int, value func(key []byte, i int) (int, error)) (int, error) {
	for first := true; ; first = false {
		if i = space(b, i+1); i >= len(b) {
			return i, errShort
		}
		if b[i] == '}' && first {
			return i + 1, nil
		}
		if b[i] != '"' {
			return i, errSyntax
		}
		key, next, err := text(b, i)
		if err != nil {
			return i, err
		}
		if i = space(b, next); i >= len(b) {
			return i, errShort
		}
		if b[i] != ':' {
			return i, errSyntax
		}
		if i, err = value(key, space(b, i+1)); err != nil {
			return i, err
		}
		if i = space(b, i); i >= len(b) {
			return i, errShort
		}
		if b[i] == '}' {
			return i + 1, nil
		}
		if b[i] != ',' {
			return i, errSyntax
		}
	}
}

// scalar reads a string or a word; a nested value where a scalar belongs is passed over as empty.
func scalar(b []byte, i int) ([]byte, int, error) {
	if i >= len(b) {
		return nil, i, errShort
	}
	switch b[i] {
	case '"':
		return text(b, i)
	case '{', '[':
		i, err := skipNested(b, i)
		return nil, i, err
	}
	return word(b, i)
}
