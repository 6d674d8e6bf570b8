package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// container makes lists, tuples and dictionaries.
func (m *machine) container(op byte) (bool, error) {
	switch op {
	case ']': // EMPTY_LIST
		return true, m.push(&List{})
	case '}': // EMPTY_DICT
		return true, m.push(&Dict{})
	case ')': // EMPTY_TUPLE
		return true, m.push(Tuple{})
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		items, err := m.popN(int(op) - 0x84)
		if err != nil {
			return true, err
		}
		return true, m.push(Tuple(items))
	case 't', 'l', 'd': // TUPLE, LIST, DICT
		items, err := m.popMark()
		if err != nil {
			return true, err
		}
		switch op {
		case 't':
			return true, m.push(Tuple(items))
		case 'l':
			return true, m.push(&List{items})
		}
		d := &Dict{}
		if err := d.add(items); err != nil {
			return true, err
		}
		return true, m.push(d)
	case 'a', 'e': // APPEND, APPENDS
		items, err := m.one(op == 'a', 1)
		if err != nil {
			return true, err
		}
		return true, m.extend(items)
	case 's', 'u': // SETITEM, SETITEMS
		items, err := m.one(op == 's', 2)
		if err != nil {
			return true, err
		}
		return true, m.assign(items)
	}
	return false, nil
}

// one takes n values where the instruction is about one item, else what lies above the mark.
func (m *machine) one(single bool, n int) ([]any, error) {
	if single {
		return m.popN(n)
	}
	return m.popMark()
}

func (m *machine) extend(items []any) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	l, ok := v.(*List)
	if !ok {
		return errors.New("something is appended to what is no list")
	}
	l.Items = append(l.Items, items...)
	return nil
}

// assign sets keys of a dictionary, or of an OrderedDict, whose items are of no interest.
func (m *machine) assign(items []any) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case *Dict:
		return v.add(items)
	case *Call:
		d, ok := v.State.(*Dict)
		if v.What.Name != "OrderedDict" || v.State != nil && !ok {
			break
		}
		if d == nil {
			d = &Dict{}
			v.State = d
		}
		return d.add(items)
	}
	return errors.New("a key is set in what is no dictionary")
}

func (d *Dict) add(items []any) error {
	if len(items)%2 != 0 {
		return errors.New("a dictionary has a key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys, d.Values = append(d.Keys, items[i]), append(d.Values, items[i+1])
	}
	return nil
}

// remember keeps and repeats values.
func (m *machine) remember(op byte) (bool, error) {
	var index uint32
	switch op {
	case 'q', 'h': // BINPUT, BINGET
		b, err := m.take(1)
		if err != nil {
			return true, err
		}
		index = uint32(b[0])
	case 'r', 'j': // LONG_BINPUT, LONG_BINGET
		b, err := m.take(4)
		if err != nil {
			return true, err
		}
		index = binary.LittleEndian.Uint32(b)
	case 'p', 'g': // PUT, GET
		s, err := m.line()
		if err != nil {
			return true, err
		}
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return true, fmt.Errorf("%.30q is no index", s)
		}
		index = uint32(n)
	case 0x94: // MEMOIZE
		index = uint32(len(m.memo))
	case '2': // DUP
		v, err := m.top()
		if err != nil {
			return true, err
		}
		return true, m.push(v)
	default:
		return false, nil
	}
	if op == 'h' || op == 'j' || op == 'g' {
		v, ok := m.memo[index]
		if !ok {
			return true, fmt.Errorf("value %d is repeated before it was kept", index)
		}
		return true, m.push(v)
	}
	v, err := m.top()
	if err != nil {
		return true, err
	}
	m.memo[index] = v
	return true, nil
}

// object notes names and calls; see the package's comment.
func (m *machine) object(op byte) (bool, error) {
	switch op {
	case 'c': // GLOBAL
		module, err := m.line()
		if err != nil {
			return true, err
		}
		name, err := m.line()
		if err != nil {
			return true, err
		}
		return true, m.name(Global{module, name})
	case 0x93: // STACK_GLOBAL
		v, err := m.popN(2)
		if err != nil {
			return true, err
		}
		module, ok := v[0].(string)
		name, okName := v[1].(string)
		if !ok || !okName {
			return true, errors.New("a name that is no text")
		}
		return true, m.name(Global{module, name})
	case 'R', 0x81: // REDUCE, NEWOBJ
		v, err := m.popN(2)
		if err != nil {
			return true, err
		}
		what, ok := v[0].(Global)
		args, okArgs := v[1].(Tuple)
		if !ok || !okArgs {
			return true, errors.New("it calls what is no known function")
		}
		return true, m.call(what, args)
	case 'b': // BUILD
		v, err := m.popN(2)
		if err != nil {
			return true, err
		}
		c, ok := v[0].(*Call)
		if !ok {
			return true, errors.New("it sets the state of what has none")
		}
		c.State = v[1]
		return true, m.push(c)
	case 'Q': // BINPERSID
		v, err := m.pop()
		if err != nil {
			return true, err
		}
		return true, m.push(Persistent{v})
	}
	return false, nil
}

func (m *machine) name(g Global) error {
	if !known[g] {
		return fmt.Errorf("it names %.60q, and a pickle's functions are never called: only plain lists and numbers, arrays of NumPy and JAX and PyTorch's tensors are read", g.String())
	}
	return m.push(g)
}

func (m *machine) call(what Global, args Tuple) error {
	if what.Module == "_codecs" { // bytes as a text of the first 256 characters
		text, ok := args.text()
		if !ok {
			return errors.New("bytes that are none")
		}
		out := make([]byte, 0, len(text))
		for _, r := range text {
			if r > 255 {
				return errors.New("bytes that are none")
			}
			out = append(out, byte(r))
		}
		// Python turns a text into bytes where it stands, so all of them together are no longer than the
		// file.
		if m.bytes += len(out); m.bytes > len(m.data) {
			return errors.New("more bytes than the file has: a text is turned into bytes again and again")
		}
		return m.push(out)
	}
	return m.push(&Call{What: what, Args: args})
}

// text is the first of a text and "latin1".
func (t Tuple) text() (string, bool) {
	if len(t) != 2 || t[1] != "latin1" {
		return "", false
	}
	s, ok := t[0].(string)
	return s, ok
}
