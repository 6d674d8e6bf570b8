package xland

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"

	"haul/internal/pickle"
)

// File is a benchmark in the Python package's format: a pickle, optionally compressed by bzip2,
// with the arrays goals, rules and init_tiles. Each ruleset has one row in each array.
type File struct {
	goals, rules, tiles []byte
	count               int
	eachRule, eachTile  int // number of rules and objects per ruleset
}

// maxFile limits the size of a pickle in bytes. The largest public file has half of it.
const maxFile = 1 << 30

// OpenFile reads a benchmark.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading only
	b, err := readFile(f)
	if err != nil {
		return nil, fmt.Errorf("benchmark %s: %w", path, err)
	}
	return b, nil
}

func readFile(f io.Reader) (*File, error) {
	in := bufio.NewReader(f)
	head, err := in.Peek(3)
	if err != nil {
		return nil, errors.New("the file is empty or cut short")
	}
	from := io.Reader(in)
	if bytes.Equal(head, []byte("BZh")) {
		from = bzip2.NewReader(in)
	}
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	return parseFile(data)
}

func parseFile(data []byte) (*File, error) {
	v, err := pickle.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("no pickle of a benchmark: %w", err)
	}
	d, ok := v.(*pickle.Dict)
	if !ok {
		return nil, errors.New("no benchmark: want a dictionary with goals, rules and init_tiles")
	}
	b := &File{count: -1}
	for _, part := range []struct {
		name  string
		into  *[]byte
		width int  // size of the last axis
		each  *int // size of the middle axis of three
	}{{"goals", &b.goals, goalBytes, nil}, {"rules", &b.rules, ruleBytes, &b.eachRule}, {"init_tiles", &b.tiles, 2, &b.eachTile}} {
		v, found := d.Get(part.name)
		if !found {
			return nil, fmt.Errorf("no benchmark: it has no %s", part.name)
		}
		shape, bytes, ok, err := pickle.Bytes(v)
		axes := 2
		if part.each != nil {
			axes = 3
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", part.name, err)
		case !ok || len(shape) != axes || shape[axes-1] != part.width:
			return nil, fmt.Errorf("%s: want an array of bytes with %d axes, the last of %d", part.name, axes, part.width)
		case b.count >= 0 && shape[0] != b.count:
			return nil, fmt.Errorf("%s: %d rulesets, goals has %d", part.name, shape[0], b.count)
		}
		b.count, *part.into = shape[0], bytes
		if part.each != nil {
			*part.each = shape[1]
		}
	}
	if b.count == 0 {
		return nil, ErrNoTasks
	}
	if b.eachRule > maxRules || b.eachTile > maxTiles {
		return nil, fmt.Errorf("rulesets of %d rules and %d objects: at most %d and %d are read", b.eachRule, b.eachTile, maxRules, maxTiles)
	}
	return b, nil
}

// Len returns the number of rulesets.
func (b *File) Len() int { return b.count }

// Ruleset returns the ruleset with a number in [0, Len).
func (b *File) Ruleset(i int) *Ruleset {
	r := &Ruleset{Goal: [goalBytes]uint8(b.goals[i*goalBytes:])}
	for j := range b.eachRule {
		r.Rules = append(r.Rules, [ruleBytes]uint8(b.rules[(i*b.eachRule+j)*ruleBytes:]))
	}
	for j := range b.eachTile {
		r.Tiles = append(r.Tiles, [2]uint8(b.tiles[(i*b.eachTile+j)*2:]))
	}
	return r
}

// Tasks returns the file's rulesets with these numbers.
func (b *File) Tasks(name string, ids []ID) Tasks {
	t := Tasks{Name: name}
	for _, id := range ids {
		t.IDs, t.Listed = append(t.IDs, int64(id)), append(t.Listed, b.Ruleset(int(id)).bytes())
	}
	return t
}
