package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"haul/internal/recipe"
)

// conversation is lines of JSON between this program and another, one object per line.
type conversation struct {
	in  *bufio.Reader
	out *bufio.Writer
}

func newConversation(in io.Reader, out io.Writer) *conversation {
	return &conversation{bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)}
}

// say writes a line.
func (c *conversation) say(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.out.Write(append(text, '\n'))
	return c.out.Flush()
}

// hear returns the next line that is not blank; io.EOF says that there is none.
func (c *conversation) hear() ([]byte, error) {
	for {
		line, err := c.in.ReadBytes('\n')
		switch {
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		case errors.Is(err, os.ErrClosed):
			return nil, io.EOF
		case err == io.EOF:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("cannot read: %w", err)
		}
	}
}

// refuse answers a line that cannot be read.
func (c *conversation) refuse(why error) error {
	return c.say(map[string]any{"error": oneLine(why.Error())})
}

// decodeLine reads a line into t: one object of known keys, such as sample, and nothing behind it.
func decodeLine(line []byte, t any, sample string) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	wrong := (*json.UnmarshalTypeError)(nil)
	switch err := d.Decode(t); {
	case errors.As(err, &wrong) && wrong.Field == "task":
		return fmt.Errorf("task: want a whole number%w", recipe.ErrLine)
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s: want a list of truth values%w", wrong.Field, recipe.ErrLine)
	case errors.As(err, &wrong):
		return fmt.Errorf("not a line of this kind: want an object such as %s%w", sample, recipe.ErrLine)
	case err != nil:
		return fmt.Errorf("not a line of this kind: %s%w", strings.TrimPrefix(err.Error(), "json: "), recipe.ErrLine)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("a line holds one object: want a line break before the next%w", recipe.ErrLine)
	}
	return nil
}

// rowsOf reads so many rows of numbers. Where rows may be missing, JSON's null is one that is.
func rowsOf(text json.RawMessage, n int, missing bool) ([][]float64, bool) {
	var given [][]*float64 // JSON's null is no number, which a float64 would not tell
	if err := json.Unmarshal(text, &given); err != nil || len(given) != n {
		return nil, false
	}
	out := make([][]float64, n)
	for i, fields := range given {
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
