package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"haul/configs"
)

const includeKey = "include"

// maxFile exceeds the size of any settings file. It keeps a wrong path from filling memory.
const maxFile = 1 << 20

// standardInput is the name for settings from a pipe. A run with such settings is called stdin.
const standardInput = "-"

// file is a settings file and its place in a chain of includes. A file includes at most one other;
// by is the file that includes this one, nil for the first.
type file struct {
	name    string // name in errors: a path, or configs/NAME.yaml if embedded
	text    []byte
	shipped bool // embedded: it may include only embedded files
	by      *file
}

// find reads the file that a user names. A plain word is first the name of a shipped file, then a
// path. For a path that does not exist it takes the shipped file with its base name. recipe selects
// the default for "" and the names that an error suggests.
func find(nameOrPath, recipe string) (*file, error) {
	among, err := recipesNamed(recipe)
	if err != nil {
		return nil, err
	}
	if nameOrPath == "" {
		nameOrPath = among[0].standard
	}
	name := baseName(nameOrPath)
	if nameOrPath == name {
		if f, ok := shipped(name); ok {
			return f, nil
		}
	}
	read := func() ([]byte, error) { return readFile(nameOrPath) }
	if nameOrPath == standardInput {
		nameOrPath, read = "stdin", func() ([]byte, error) { return readAll(os.Stdin) }
	}
	text, err := read()
	if err == nil && blank(text) && !isDevice(nameOrPath) {
		return nil, fmt.Errorf("config %s: no settings in it; for all defaults use --config %s", nameOrPath, among[0].base)
	}
	if err == nil {
		return &file{name: nameOrPath, text: text}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("config %s: %w", nameOrPath, reason(err))
	}
	if f, ok := shipped(name); ok {
		return f, nil
	}
	return nil, fmt.Errorf("config %s: no such file or shipped name; %s", nameOrPath, suggestion(name, Names(recipe)))
}

// suggestion returns a suggestion: the nearest name, or all names.
func suggestion(name string, names []string) string {
	if near := nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "shipped: " + strings.Join(names, ", ")
}

// include finds the file that f includes as `path`. It tries in order the working folder (the
// original program ran in its own), the folder of f, the base name in the folder of f, and the
// shipped files. at is the line with the include.
func (f *file) include(path string, at origin) (*file, error) {
	if !f.shipped {
		dir := filepath.Dir(f.name)
		candidates := []string{path, filepath.Join(dir, path), filepath.Join(dir, filepath.Base(path))}
		for _, candidate := range candidates {
			text, err := readRegular(candidate)
			switch {
			case err == nil && blank(text):
				return nil, at.errorf("include %s: no settings in it", shorten(path))
			case err == nil:
				return f.then(&file{name: candidate, text: text}, path, at)
			case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
				return nil, at.errorf("include %s: %v", shorten(path), reason(err))
			}
		}
	}
	if next, ok := shipped(baseName(path)); ok {
		return f.then(next, path, at)
	}
	return nil, at.errorf("include %s: no such file here or beside this one, nor a shipped one; %s", shorten(path), suggestion(baseName(path), shippedFiles()))
}

// then appends next to the chain that ends in f. It is an error if the chain contains next.
func (f *file) then(next *file, path string, at origin) (*file, error) {
	for g := f; g != nil; g = g.by {
		if g.id() == next.id() {
			return nil, at.errorf("include %s: a circle, since %s leads back here", shorten(path), shorten(g.name))
		}
	}
	next.by = f
	return next, nil
}

// id returns equal texts for two names of one file.
func (f *file) id() string {
	if f.shipped {
		return "shipped " + f.name
	}
	id := f.name
	if whole, err := filepath.Abs(id); err == nil {
		id = whole
	}
	if real, err := filepath.EvalSymlinks(id); err == nil {
		id = real
	}
	return id
}

func baseName(path string) string {
	base := filepath.Base(path)
	for _, ending := range []string{".yaml", ".yml"} {
		base = strings.TrimSuffix(base, ending)
	}
	return base
}

// Shipped returns the names of the settings that come with the program, except for
// bases of other files.
func Shipped() (names []string) {
	for _, name := range shippedFiles() {
		if name != "default" && !strings.HasSuffix(name, "_default") {
			names = append(names, name)
		}
	}
	return names
}

// shippedFiles returns the base names of the embedded files.
func shippedFiles() []string {
	entries, _ := configs.FS.ReadDir(".") // the root of an embedded FS always reads
	var names []string
	for _, e := range entries {
		names = append(names, baseName(e.Name()))
	}
	return names
}

// shipped returns the embedded file with a base name.
func shipped(name string) (*file, bool) {
	text, err := configs.FS.ReadFile(name + ".yaml")
	if err != nil {
		return nil, false
	}
	return &file{name: "configs/" + name + ".yaml", text: text, shipped: true}, true
}

// blank reports whether a file has only comments and sections without keys. It is then an error,
// because its author did not mean a run of defaults. An empty mapping, {}, is not blank.
func blank(text []byte) bool {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return false // a syntax error, which the reader of the keys reports
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null" {
		return true
	}
	keys := rootKeys(text)
	for _, k := range keys {
		if !fromNode(k.value).isNull() || !slices.ContainsFunc(recipes, func(r *recipe) bool { return r.keys.sections[k.key.Value] != "" }) {
			return false
		}
	}
	return len(keys) > 0
}

// isDevice reports whether path is a device such as /dev/null, which users pass on purpose.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeDevice != 0
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func readAll(f *os.File) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("over %d bytes; not a settings file", maxFile)
	}
	return text, err
}

// readRegular reads an included file. Unlike a path on the command line it must be a regular file,
// because reading a pipe could block.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return readFile(path)
}

// reason returns the cause of a path error without the path.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
