package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// origin is where a value was written. Errors about the value begin with it.
type origin struct {
	file       string
	line       int
	set        string // the whole --set argument; file and line are empty then
	precedence precedence
}

// precedence is the precedence of a source of settings. The highest is the first that a user would
// change.
type precedence int

const (
	precedenceDefault precedence = iota
	precedenceIncluded
	precedenceFile
	precedenceSet
)

func (o origin) errorf(format string, args ...any) error {
	if o.set != "" {
		return fmt.Errorf("--set %s: %s", shorten(o.set), fmt.Sprintf(format, args...))
	}
	return fmt.Errorf("%s:%d: %s", o.file, o.line, fmt.Sprintf(format, args...))
}

func (o origin) refuse(key string, s source, bad valueError) error {
	switch {
	case o.set != "":
		return o.errorf("%s", bad)
	case bad == noValue:
		return o.errorf("%s %s", key, bad)
	default:
		return o.errorf("%s %s, got %s", key, bad, s.got())
	}
}

type setting struct {
	value any
	from  origin
}

// layer holds the keys that one file or one list of --set sets.
type layer map[string]setting

// merged returns base with the layers over it. The last layer takes precedence.
func merged(base layer, over ...layer) layer {
	out := make(layer, len(base))
	for _, l := range append([]layer{base}, over...) {
		for k, v := range l {
			out[k] = v
		}
	}
	return out
}

// reader reads a YAML document by the schema. It descends into sections of the schema only, so that
// an alias to an enclosing node ends in an unknown key. Merge keys can loop or multiply: budget
// limits the number of nodes.
type reader struct {
	schema     *schema
	file       string
	precedence precedence
	out        layer
	budget     int
	faults     ErrorList
}

func (s *schema) readLayer(file string, data []byte, precedence precedence) (layer, error) {
	r := &reader{schema: s, file: file, precedence: precedence, out: layer{}, budget: 10_000}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF): // empty, or comments only: nothing changed
		return r.out, nil
	case err != nil:
		return nil, yamlError(file, data, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, r.at(&second).errorf("a second YAML document; a settings file holds one")
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError(file, data, err)
	}
	if err := r.section(&doc, doc.Content[0], ""); err != nil {
		r.faults = append(r.faults, err)
	}
	return r.out, r.faults.err()
}

// ErrorList is a list of errors, in the order of their positions. Error returns the first message;
// Unwrap returns all errors.
type ErrorList []error

func (m ErrorList) Error() string { return m[0].Error() }

// Unwrap returns all errors.
func (m ErrorList) Unwrap() []error { return m }

// err returns nil for no error, the error itself for one, and else m.
func (m ErrorList) err() error {
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return m
}

// All returns the errors that an error of this package contains.
func All(err error) []error {
	if m := (ErrorList)(nil); errors.As(err, &m) {
		return m
	}
	return []error{err}
}

func (r *reader) at(n *yaml.Node) origin {
	return origin{file: r.file, line: n.Line, precedence: r.precedence}
}

// section reads the mapping n as the section prefix ("" is the root). Errors name key. After a
// faulty key it continues with the next one.
func (r *reader) section(key, n *yaml.Node, prefix string) error {
	n = follow(n)
	if src := fromNode(n); n.Kind != yaml.MappingNode {
		switch {
		case src.isNull():
			return nil
		case prefix == "":
			return r.at(n).errorf("the file must hold keys and values, got %s", src.got())
		}
		return r.at(key).errorf("%s is a section with keys such as %s, got %s", prefix, r.schema.sections[prefix], src.got())
	}
	pairs, err := r.pairs(n, 0)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		path := p.key.Value
		if prefix != "" {
			path = prefix + "." + path
		}
		if r.schema.sections[path] != "" {
			err = r.section(p.key, p.value, path)
		} else {
			err = r.leaf(p.key, p.value, path)
		}
		if err != nil {
			r.faults = append(r.faults, err)
		}
	}
	return nil
}

func (r *reader) leaf(key, value *yaml.Node, path string) error {
	at, e := r.at(key), r.schema.entry(path)
	if e == nil {
		return at.errorf("%s", r.schema.unknown(path, value))
	}
	if first, ok := r.out[path]; ok {
		return at.errorf("%s is set twice; first on line %d", path, first.from.line)
	}
	if v := follow(value); v.Style&yaml.TaggedStyle != 0 {
		return at.errorf("%s has the tag %s; write the plain value", path, shorten(v.Tag))
	}
	src := fromNode(value)
	v, bad := e.read(src)
	if bad != "" {
		return at.refuse(path, src, bad)
	}
	r.out[path] = setting{v, at}
	return nil
}

type keyValue struct{ key, value *yaml.Node }

// pairs returns a mapping's keys with merge keys (<<) resolved as YAML defines them: the mapping's
// own keys take precedence, then earlier sources over later ones. Values are not merged.
func (r *reader) pairs(n *yaml.Node, depth int) ([]keyValue, error) {
	if r.budget -= 1 + len(n.Content)/2; r.budget < 0 || depth > 100 {
		return nil, r.at(n).errorf("merge keys (<<) that repeat themselves")
	}
	var out []keyValue
	var sources []*yaml.Node
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, r.at(key).errorf("a key must be a plain word")
		}
		if key.Tag == "!!merge" {
			sources = append(sources, mergeSources(value)...)
			continue
		}
		if line, ok := seen[key.Value]; ok {
			return nil, r.at(key).errorf("%s is set twice; first on line %d", shorten(key.Value), line)
		}
		seen[key.Value] = key.Line
		out = append(out, keyValue{key, value})
	}
	for _, src := range sources {
		if src.Kind != yaml.MappingNode {
			return nil, r.at(src).errorf("a merge key (<<) takes a section or a list of sections")
		}
		more, err := r.pairs(src, depth+1)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if _, ok := seen[p.key.Value]; !ok {
				seen[p.key.Value] = p.key.Line
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func mergeSources(n *yaml.Node) []*yaml.Node {
	n = follow(n)
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	var out []*yaml.Node
	for _, item := range n.Content {
		out = append(out, follow(item))
	}
	return out
}

func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

var yamlMessage = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?(.*)`)

// yamlError returns the parser's error in one line with a position. The parser's line may be that
// of the enclosing block, so yamlError itself looks for the most common fault, a tab.
func yamlError(file string, data []byte, err error) error {
	at := origin{file: file, line: 1}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if strings.Contains(indent, "\t") && strings.TrimSpace(line) != "" {
			at.line = number
			return at.errorf("a tab in the indentation; YAML allows only spaces there")
		}
	}
	message := strings.ReplaceAll(err.Error(), "\n", " ")
	if m := yamlMessage.FindStringSubmatch(message); m != nil {
		message = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			at.line = n
		}
	}
	return at.errorf("not valid YAML: %s", message)
}

// readSets parses --set arguments of the form `key=value`. The last one for a key takes precedence.
func (s *schema) readSets(sets []string) (layer, error) {
	out := layer{}
	var faults ErrorList
	for _, arg := range sets {
		if key, v, err := s.readSet(arg); err != nil {
			faults = append(faults, err)
		} else {
			out[key] = v
		}
	}
	return out, faults.err()
}

func (s *schema) readSet(arg string) (key string, _ setting, err error) {
	at := origin{set: arg, precedence: precedenceSet}
	if arg == "" { // an empty argument cannot be a position
		return "", setting{}, errors.New("--set: write key=value")
	}
	key, value, ok := strings.Cut(arg, "=")
	key = strings.TrimSpace(key)
	e := s.entry(key)
	switch {
	case !ok, key == "":
		return "", setting{}, at.errorf("write key=value")
	case e == nil && s.sections[key] != "":
		return "", setting{}, at.errorf("%s is a section with keys such as %s", key, s.sections[key])
	case e == nil:
		return "", setting{}, at.errorf("%s", unknownKey(key, s.keys()))
	case e.kind == kindFile:
		return "", setting{}, at.errorf("%s belongs in a settings file; --config names that", key)
	}
	src := fromSet(strings.TrimSpace(value), e.kind)
	v, bad := e.read(src)
	if bad != "" {
		return "", setting{}, at.refuse(key, src, bad)
	}
	return key, setting{v, at}, nil
}

// unknown returns the error for a key that does not exist. It suggests the nearest key, or the
// nearest section if value is a mapping, or either if value is empty.
func (s *schema) unknown(key string, value *yaml.Node) string {
	switch {
	case follow(value).Kind == yaml.MappingNode:
		return unknownKey(key, s.sectionNames())
	case fromNode(value).isNull():
		return unknownKey(key, append(s.sectionNames(), s.keys()...))
	}
	return unknownKey(key, s.keys())
}

func unknownKey(key string, candidates []string) string {
	if near := nearest(key, candidates); near != "" {
		return fmt.Sprintf("unknown key %s; did you mean %s?", shorten(key), near)
	}
	return fmt.Sprintf("unknown key %s; `haul config explain` lists the known ones", shorten(key))
}
