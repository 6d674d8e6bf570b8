package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// known lists the names that a file may use, by what they are part of. Everything else is refused
// by its name.
var known = map[Global]bool{
	{"numpy", "ndarray"}:                       true,
	{"numpy", "dtype"}:                         true,
	{"numpy.core.multiarray", "_reconstruct"}:  true,
	{"numpy._core.multiarray", "_reconstruct"}: true,
	{"numpy._core.numeric", "_frombuffer"}:     true,
	{"numpy.core.numeric", "_frombuffer"}:      true,
	{"numpy.core.multiarray", "scalar"}:        true,
	{"numpy._core.multiarray", "scalar"}:       true,
	{"jax._src.array", "_reconstruct_array"}:   true,
	{"_codecs", "encode"}:                      true, // bytes in protocol 2: a text and "latin1"
	{"collections", "OrderedDict"}:             true,
	{"torch._utils", "_rebuild_tensor_v2"}:     true,
	{"torch", "FloatStorage"}:                  true,
	{"torch", "DoubleStorage"}:                 true,
	{"torch", "LongStorage"}:                   true,
	{"torch", "IntStorage"}:                    true,
}

// Limits of a file.
const (
	maxValues = 1 << 25 // on the stack, in the memo and in all lists together
	maxDigits = 20      // of an integer in text
)

// Decode reads the one value of a pickle of any protocol from 0 to 5. What is not plain data, an
// array of NumPy's or a tensor of PyTorch's is refused in one line.
func Decode(data []byte) (any, error) {
	m := &machine{data: data, memo: map[uint32]any{}}
	v, err := m.run()
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", m.at, err)
	}
	return v, nil
}

// machine is the pickle's stack and memo.
type machine struct {
	data  []byte
	pos   int
	at    int // of the instruction under way
	stack []any
	marks []int
	memo  map[uint32]any
	made  int // values so far
	bytes int // made of texts so far
}

var errCut = errors.New("the file ends in the middle of a value")

func (m *machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.data)-m.pos {
		return nil, errCut
	}
	b := m.data[m.pos:][:n]
	m.pos += n
	return b, nil
}

// size reads the length of what follows, in that many bytes.
func (m *machine) size(width int) (int, error) {
	b, err := m.take(width)
	if err != nil {
		return 0, err
	}
	var u uint64
	for i, x := range b {
		u |= uint64(x) << (8 * i)
	}
	if u > uint64(len(m.data)) {
		return 0, errCut
	}
	return int(u), nil
}

// counted reads what a length of that many bytes announces.
func (m *machine) counted(width int) ([]byte, error) {
	n, err := m.size(width)
	if err != nil {
		return nil, err
	}
	return m.take(n)
}

func (m *machine) line() (string, error) {
	end := bytes.IndexByte(m.data[m.pos:], '\n')
	if end < 0 {
		return "", errCut
	}
	s := string(m.data[m.pos:][:end])
	m.pos += end + 1
	return s, nil
}

func (m *machine) push(v any) error {
	if m.made++; m.made > maxValues {
		return fmt.Errorf("more than %d values", maxValues)
	}
	m.stack = append(m.stack, v)
	return nil
}

// bottom is how deep values may be taken: down to the last mark.
func (m *machine) bottom() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *machine) pop() (any, error) {
	if len(m.stack) <= m.bottom() {
		return nil, errors.New("a value is used that is not there")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// popN takes the last n values, in order.
func (m *machine) popN(n int) ([]any, error) {
	from := len(m.stack) - n
	if from < m.bottom() {
		return nil, errors.New("a value is used that is not there")
	}
	out := slices.Clone(m.stack[from:])
	m.stack = m.stack[:from]
	return out, nil
}

// popMark takes what lies above the last mark, and the mark.
func (m *machine) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, errors.New("a mark is used that is not there")
	}
	out, err := m.popN(len(m.stack) - m.bottom())
	m.marks = m.marks[:len(m.marks)-1]
	return out, err
}

func (m *machine) top() (any, error) {
	if len(m.stack) <= m.bottom() {
		return nil, errors.New("a value is used that is not there")
	}
	return m.stack[len(m.stack)-1], nil
}

func (m *machine) run() (any, error) {
	for {
		m.at = m.pos
		op, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' {
			return m.pop()
		}
		if err := m.step(op[0]); err != nil {
			return nil, err
		}
	}
}

// step runs one instruction. Python's pickletools names them.
func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		b, err := m.take(1)
		if err == nil && b[0] > 5 {
			err = fmt.Errorf("protocol %d, 5 is the last known", b[0])
		}
		return err
	case 0x95: // FRAME: its length is of no use to a reader of the whole
		_, err := m.take(8)
		return err
	case '(': // MARK
		if len(m.marks) >= maxValues {
			return fmt.Errorf("more than %d values", maxValues)
		}
		m.marks = append(m.marks, len(m.stack))
		return nil
	case '0': // POP
		_, err := m.pop()
		return err
	case '1': // POP_MARK
		_, err := m.popMark()
		return err
	}
	for _, part := range []func(byte) (bool, error){m.scalar, m.text, m.container, m.remember, m.object} {
		if known, err := part(op); known || err != nil {
			return err
		}
	}
	return fmt.Errorf("instruction 0x%02x is not one of plain data", op)
}

// scalar reads numbers, booleans and None.
func (m *machine) scalar(op byte) (bool, error) {
	switch op {
	case 'N': // NONE
		return true, m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		return true, m.push(op == 0x88)
	case 'G': // BINFLOAT
		b, err := m.take(8)
		if err != nil {
			return true, err
		}
		return true, m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 'J': // BININT
		b, err := m.take(4)
		if err != nil {
			return true, err
		}
		return true, m.push(int64(int32(binary.LittleEndian.Uint32(b))))
	case 'K': // BININT1
		b, err := m.take(1)
		if err != nil {
			return true, err
		}
		return true, m.push(int64(b[0]))
	case 'M': // BININT2
		b, err := m.take(2)
		if err != nil {
			return true, err
		}
		return true, m.push(int64(binary.LittleEndian.Uint16(b)))
	case 0x8a: // LONG1
		b, err := m.counted(1)
		if err != nil {
			return true, err
		}
		if len(b) > 8 {
			return true, errors.New("an integer of more than 64 bits")
		}
		var u uint64
		for i, x := range b {
			u |= uint64(x) << (8 * i)
		}
		shift := 64 - 8*max(1, len(b))
		return true, m.push(int64(u<<shift) >> shift)
	case 'I', 'L', 'F': // INT, LONG, FLOAT
		s, err := m.line()
		if err != nil {
			return true, err
		}
		return true, m.parse(op, s)
	}
	return false, nil
}

// parse reads a number in text, as protocol 0 has them.
func (m *machine) parse(op byte, s string) error {
	if op == 'I' && (s == "00" || s == "01") {
		return m.push(s == "01")
	}
	if op == 'L' && len(s) > 0 && s[len(s)-1] == 'L' {
		s = s[:len(s)-1]
	}
	if op == 'F' {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%.30q is no number", s)
		}
		return m.push(x)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || len(s) > maxDigits {
		return fmt.Errorf("%.30q is no integer of 64 bits", s)
	}
	return m.push(n)
}

// text reads strings and bytes.
func (m *machine) text(op byte) (bool, error) {
	width, isText := 0, true
	switch op {
	case 0x8c: // SHORT_BINUNICODE
		width = 1
	case 'X': // BINUNICODE
		width = 4
	case 0x8d: // BINUNICODE8
		width = 8
	case 'C', 'U': // SHORT_BINBYTES, SHORT_BINSTRING
		width, isText = 1, op == 'U'
	case 'B', 'T': // BINBYTES, BINSTRING
		width, isText = 4, op == 'T'
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		width, isText = 8, false
	case 'V': // UNICODE
		s, err := m.line()
		if err != nil {
			return true, err
		}
		return true, m.push(rawUnicode(s))
	case 'S': // STRING: in quotes
		s, err := m.line()
		if err != nil {
			return true, err
		}
		if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' || bytes.ContainsRune([]byte(s), '\\') {
			return true, fmt.Errorf("%.30q is no plain string", s)
		}
		return true, m.push(s[1 : len(s)-1])
	default:
		return false, nil
	}
	b, err := m.counted(width)
	if err != nil {
		return true, err
	}
	if isText {
		return true, m.push(string(b))
	}
	return true, m.push(b)
}

// rawUnicode reads Python's raw-unicode-escape: a byte is a character, and \uXXXX any other.
func rawUnicode(s string) string {
	out := make([]rune, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+5 < len(s) && s[i+1] == 'u' {
			if r, err := strconv.ParseUint(s[i+2:i+6], 16, 32); err == nil {
				out, i = append(out, rune(r)), i+5
				continue
			}
		}
		out = append(out, rune(s[i]))
	}
	return string(out)
}
