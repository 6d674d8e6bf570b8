package trace

import (
	"bytes"
	"hash/maphash"
	"strconv"
)

// event is one entry of the trace while it is being read. Its byte slices point into the reader's
// buffer: they must be copied to be kept beyond the next event.
type event struct {
	phase    byte
	cat      category
	name     []byte
	pid, tid []byte
	start    int64 // ns
	dur      int64 // ns
	hasStart bool
	hasDur   bool
	foreign  bool // a call of a runtime with unknown names
	args     arguments
}

// arguments holds the arguments of an event that rules use.
type arguments struct {
	correlation uint32
	bytes       uint32
	sequence    uint32
	blocks      float32 // thread blocks per multiprocessor; negative if unknown
	grid        float32 // thread blocks in total; 0 if unknown
	inputs      uint64  // hash of shapes and scalar inputs; 0 if not recorded
	elements    uint64  // of the first recorded shape, for the size of a collective
	device      uint32
	stream      uint32
	members     uint32 // size of the process group
	hasDevice   bool
	shapes      bool   // input: parse the first shape and its type, which only collectives need
	dims        []byte // not parsed
	types       []byte
	values      []byte // the scalars
	dtype       []byte
	group       []byte
	collective  []byte
	stack       []byte // Python's frames as written by old versions: one string per operator
	label       []byte // the name in a metadata event
	kernel      []byte // name of the kernel that a launch starts
	total       int64  // total bytes allocated on the device, with a [memory] event; -1 if unknown
	change      int64  // bytes allocated, negative if freed
	addr        uint64
	host        bool // the memory is on the host
}

// category selects the record that an event becomes.
type category uint8

const (
	catOther category = iota
	catOp
	catCall
	CatKernel
	CatCopy
	catSet
	catNote     // an annotation: a profiler step, the data loader, a collective
	catPython   // a Python function
	catOverhead // the profiler's own work
	catBare     // no category, as JAX writes: the thread's name gives the kind
)

// categoryOf returns the category for the spellings of PyTorch 1.13 and later, and of older
// versions.
func categoryOf(s []byte) category {
	switch string(s) {
	case "cpu_op", "Operator", "hpu_op":
		return catOp
	case "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "hip_driver", "mtia_runtime", "xpu_runtime", "xpu_driver",
		"privateuse1_runtime", "privateuse1_driver":
		return catCall
	case "kernel", "Kernel", "mtia_ccp_events":
		return CatKernel
	case "gpu_memcpy", "Memcpy":
		return CatCopy
	case "gpu_memset", "Memset":
		return catSet
	case "user_annotation":
		return catNote
	case "python_function":
		return catPython
	case "overhead":
		return catOverhead
	}
	return catOther
}

var inputSeed = maphash.MakeSeed()

// parse reads the event whose opening brace is at i. It skips an event of an unused kind as soon as
// the kind is known.
func (e *event) parse(b []byte, i int) (int, error) {
	*e = event{}
	e.args.blocks, e.args.total = -1, -1
	e.cat = catBare
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
			e.foreign = e.cat == catCall && isForeignRuntime(w)
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
			if (known && (e.cat == catOther && e.phase == 'X' || e.cat == catPython)) || i >= len(b) || b[i] != '{' ||
				(e.phase != 0 && e.phase != 'X' && e.phase != 'M' && e.phase != 'i') {
				return skip(b, i)
			}
			e.args.shapes = !known || e.cat == catNote
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
		case "correlation", "correlation_id":
			w, i, err = scalar(b, i)
			a.correlation = count(w)
		case "bytes":
			w, i, err = scalar(b, i)
			a.bytes = count(w)
		case "Bytes":
			if w, i, err = scalar(b, i); err == nil {
				a.bytes = count(w)
				if n, bad := strconv.ParseInt(string(w), 10, 64); bad == nil {
					a.change = n
				}
			}
		case "Addr":
			if w, i, err = scalar(b, i); err == nil {
				a.addr, _ = strconv.ParseUint(string(w), 10, 64)
			}
		case "kernel":
			a.kernel, i, err = scalar(b, i)
		case "Device Id":
			if w, i, err = scalar(b, i); err == nil && !a.hasDevice {
				a.device = count(w)
			}
		case "Sequence number":
			w, i, err = scalar(b, i)
			a.sequence = count(w)
		case "device":
			w, i, err = scalar(b, i)
			a.device, a.hasDevice = count(w), true
		case "stream":
			w, i, err = scalar(b, i)
			a.stream = count(w)
		case "blocks per SM":
			if w, i, err = scalar(b, i); err == nil {
				if f, bad := strconv.ParseFloat(string(w), 32); bad == nil && f >= 0 {
					a.blocks = float32(f)
				}
			}
		case "grid":
			start := i
			if i, err = skip(b, i); err == nil {
				a.grid = product(b[start:i])
			}
		case "kernel_details", "memcpy_details":
			if w, i, err = scalar(b, i); err == nil {
				a.details(w)
			}
		case "Input Dims", "Input dims", "Concrete Inputs":
			start := i
			if i, err = skip(b, i); err == nil {
				a.inputs = a.inputs*31 + maphash.Bytes(inputSeed, b[start:i])
				if key[0] == 'I' {
					a.dims = b[start:i]
				} else {
					a.values = b[start:i]
				}
				if a.shapes && a.elements == 0 && key[0] == 'I' {
					a.elements = firstShape(b[start:i])
				}
			}
		case "In msg nelems":
			w, i, err = scalar(b, i)
			a.elements = uint64(count(w))
		case "Group size":
			w, i, err = scalar(b, i)
			a.members = count(w)
		case "dtype":
			a.dtype, i, err = scalar(b, i)
		case "Input type":
			start := i
			if i, err = skip(b, i); err == nil {
				a.types = b[start:i]
				if a.shapes && len(a.dtype) == 0 {
					a.dtype = firstWord(a.types)
				}
			}
		case "Process Group Name":
			a.group, i, err = scalar(b, i)
		case "Collective name":
			a.collective, i, err = scalar(b, i)
		case "Call stack":
			a.stack, i, err = scalar(b, i)
		case "name":
			a.label, i, err = scalar(b, i)
		case "Total Allocated":
			if w, i, err = scalar(b, i); err == nil {
				if n, bad := strconv.ParseInt(string(w), 10, 64); bad == nil {
					a.total = n
				}
			}
		case "Device Type":
			w, i, err = scalar(b, i)
			a.host = string(w) == "0"
		default:
			return skip(b, i)
		}
		return i, err
	})
}

// details parses JAX's description of a kernel or a copy: "grid:16,1,1 block:512,1,1", "size:4096".
func (a *arguments) details(w []byte) {
	for _, f := range bytes.Fields(w) {
		if v, ok := bytes.CutPrefix(f, []byte("grid:")); ok {
			a.grid = product(v)
		}
		if v, ok := bytes.CutPrefix(f, []byte("size:")); ok {
			a.bytes = count(v)
		}
	}
}

// product multiplies the whole numbers of a list.
func product(b []byte) float32 {
	p, n, in, any := float32(1), float32(0), false, false
	for _, c := range b {
		if d := c - '0'; d <= 9 {
			n, in, any = n*10+float32(d), true, true
		} else if in {
			p, n, in = p*n, 0, false
		}
	}
	switch {
	case !any:
		return 0
	case in:
		return p * n
	}
	return p
}

// firstShape returns the number of elements of the first shape in a list of shapes.
func firstShape(b []byte) uint64 {
	open := bytes.IndexByte(b[min(1, len(b)):], '[')
	if open < 0 {
		return 0
	}
	b = b[open+1:]
	if end := bytes.IndexByte(b, ']'); end >= 0 {
		b = b[:end+1]
	}
	return uint64(product(b))
}

// firstWord returns the first string of a list of strings.
func firstWord(b []byte) []byte {
	from := bytes.IndexByte(b, '"')
	if from < 0 {
		return nil
	}
	w, _, err := text(b, from)
	if err != nil {
		return nil
	}
	return w
}

// eachKey visits the keys of the object that opens at i. value gets the position of a value's first
// byte and returns the position after its last byte.
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

// scalar reads a string or a literal. It skips a nested value and returns an empty string for it.
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
