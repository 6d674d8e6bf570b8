package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"haul/internal/recipe"
)

// Conversation is lines of JSON between this program and another, one object per line.
type Conversation struct {
	In    *bufio.Reader
	out   *bufio.Writer
	Limit int // the longest line, in bytes
}

// NewConversation expects lines of so many numbers at most.
func NewConversation(in io.Reader, out io.Writer, numbers int) *Conversation {
	return &Conversation{bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out), 1<<20 + 64*numbers}
}

// Say writes a line.
func (c *Conversation) Say(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.out.Write(append(text, '\n'))
	return c.out.Flush()
}

// Hear returns the next line that is not blank; io.EOF says that there is none. A line that is too
// long is refused.
func (c *Conversation) Hear() ([]byte, error) {
	for {
		line, long, err := readLine(c.In, c.Limit)
		switch {
		case long:
			if err := c.Refuse(fmt.Errorf("a line of more than %d bytes: want one line per step", c.Limit)); err != nil {
				return nil, err
			}
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		}
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil, io.EOF
		case err == io.EOF:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("cannot read: %w", err)
		}
	}
}

// Refuse answers a line that cannot be read.
func (c *Conversation) Refuse(why error) error {
	return c.Say(map[string]any{"error": OneLine(why.Error())})
}

// readLine is the next line. Of one that is longer than the limit nothing is kept, so that a
// program that never breaks its lines does not fill the memory.
func readLine(in *bufio.Reader, limit int) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// LinePart is a key of a line and where its value goes.
type LinePart struct {
	Key   string
	Value *json.RawMessage
}

// DecodeLine reads a line such as sample: one object of known keys, each once and spelled as the
// help spells them, and nothing behind it. JSON's own rules would take the last of two, and
// "Reward" for "reward".
func DecodeLine(line []byte, sample string, parts ...LinePart) error {
	d := json.NewDecoder(bytes.NewReader(line))
	bad := func(err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("not a line of this kind: %s%w", strings.TrimPrefix(err.Error(), "json: "), recipe.ErrLine)
	}
	begins, err := d.Token()
	if err != nil {
		return bad(err)
	}
	if begins != json.Delim('{') {
		return Unlike(sample)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return bad(err)
		}
		name, _ := key.(string) // where an object goes on, there is a name or an error
		i := slices.IndexFunc(parts, func(p LinePart) bool { return p.Key == name })
		if i < 0 {
			return bad(fmt.Errorf("unknown field %q, want %s", name, keysOf(parts)))
		}
		part := parts[i].Value
		if *part != nil {
			return bad(fmt.Errorf("%s is given twice", name))
		}
		if err := d.Decode(part); err != nil {
			return bad(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("a line holds one object: want a line break before the next%w", recipe.ErrLine)
	}
	return nil
}

// Unlike refuses a line that is nothing like a sample.
func Unlike(sample string) error {
	return fmt.Errorf("not a line of this kind: want an object such as %s%w", sample, recipe.ErrLine)
}

// keysOf lists the keys.
func keysOf(parts []LinePart) string {
	var keys []string
	for _, p := range parts {
		keys = append(keys, p.Key)
	}
	return strings.Join(keys[:len(keys)-1], ", ") + " or " + keys[len(keys)-1]
}

// Holds tells whether a key has a value.
func Holds(text json.RawMessage) bool { return len(text) > 0 && !bytes.Equal(text, []byte("null")) }

// ListOf reads a list of so many values, none of which is missing: JSON's null is no number and no
// truth value, which a float64 or a bool would not tell.
func ListOf[T any](text json.RawMessage, n int) ([]T, bool) {
	var values []*T
	if err := json.Unmarshal(text, &values); err != nil || len(values) != n || slices.Contains(values, nil) {
		return nil, false
	}
	out := make([]T, n)
	for i, v := range values {
		out[i] = *v
	}
	return out, true
}

// RowsOf reads so many rows of numbers. Where rows may be missing, JSON's null is one that is.
func RowsOf(text json.RawMessage, n int, missing bool) ([][]float64, bool) {
	var rows [][]*float64
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) != n {
		return nil, false
	}
	out := make([][]float64, n)
	for i, fields := range rows {
		if fields == nil && !missing {
			return nil, false
		}
		for _, v := range fields {
			if v == nil {
				return nil, false
			}
			out[i] = append(out[i], *v)
		}
	}
	return out, true
}

// TruthsOf reads the truth values of a key that may be left out.
func TruthsOf(key string, text json.RawMessage, n int) ([]bool, error) {
	if !Holds(text) {
		return nil, nil
	}
	out, ok := ListOf[bool](text, n)
	if !ok {
		return nil, fmt.Errorf("%s: want a list of %d truth values%w", key, n, recipe.ErrLine)
	}
	return out, nil
}
