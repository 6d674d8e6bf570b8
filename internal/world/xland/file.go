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

// File is a benchmark as the package keeps it: a pickle, packed by bzip2 or not, with the arrays
// goals, rules and init_tiles, a row for each ruleset.
type File struct {
	goals, rules, tiles []byte
	count               int
	eachRule, eachTile  int // rules and objects of each ruleset
}

// maxFile is the most bytes of a pickle; the largest public file has half of it.
const maxFile = 1 << 30

// OpenFile reads a benchmark.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
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
		width int  // of the last axis
		each  *int // where there are three
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

// Len is how many rulesets there are.
func (b *File) Len() int { return b.count }

// Ruleset is the one of a number in [0, Len).
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

// Tasks lists rulesets of a file by their numbers.
func (b *File) Tasks(name string, ids []ID) Tasks {
	t := Tasks{Name: name}
	for _, id := range ids {
		t.IDs, t.Listed = append(t.IDs, int64(id)), append(t.Listed, b.Ruleset(int(id)).bytes())
	}
	return t
}
