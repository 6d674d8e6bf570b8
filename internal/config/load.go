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
	"sync"

	"haul/configs"
)

// DefaultName is the shipped file that runs when none is asked for.
const DefaultName = "quick"

// maxFile is far past any settings file: it only keeps a wrong path from filling memory.
const maxFile = 1 << 20

// gtDefaults is the embedded default.yaml, read once.
var gtDefaults = sync.OnceValues(func() (layer, error) {
	data, err := configs.FS.ReadFile("default.yaml")
	if err != nil {
		return nil, err
	}
	return gtKeys.readLayer("configs/default.yaml", data, 0)
})

// Names lists the shipped settings files, without their ending.
func Names() []string {
	entries, _ := configs.FS.ReadDir(".") // the root of an embedded FS always reads
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load reads settings by a shipped name (`tiny_1`) or a path, with `key=value` sets over them.
// A path that does not exist falls back to the shipped file of its base name, so that
// `configs/tiny_1.yaml` works from any folder; "" is DefaultName.
func Load(nameOrPath string, sets []string) (*Config, error) {
	if nameOrPath == "" {
		nameOrPath = DefaultName
	}
	name := baseName(nameOrPath)
	if nameOrPath == name { // a bare word is a shipped name before it is a file
		if data, ok := shipped(name); ok {
			return Parse("configs/"+name+".yaml", data, sets)
		}
	}
	data, err := readFile(nameOrPath)
	if err == nil {
		return Parse(nameOrPath, data, sets)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("config %s: %w", nameOrPath, reason(err))
	}
	if data, ok := shipped(name); ok {
		return Parse("configs/"+name+".yaml", data, sets)
	}
	if near := nearest(name, Names()); near != "" {
		return nil, fmt.Errorf("config %s: no such file or shipped name; did you mean %s?", nameOrPath, near)
	}
	return nil, fmt.Errorf("config %s: no such file or shipped name; shipped: %s", nameOrPath, strings.Join(Names(), ", "))
}

// Parse reads settings from YAML text; name is what errors call it, and its base is Config.Name.
func Parse(name string, data []byte, sets []string) (*Config, error) {
	base, err := gtDefaults()
	if err != nil {
		return nil, err
	}
	file, err := gtKeys.readLayer(name, data, 1)
	if err != nil {
		return nil, err
	}
	flags, err := gtKeys.readSets(sets)
	if err != nil {
		return nil, err
	}
	all := merged(base, file, flags)
	c := &Config{Name: baseName(name)}
	fill(c, all)
	if bad := c.conflicts(); len(bad) > 0 {
		return nil, bad[0].at(all).errorf("%s", bad[0].text)
	}
	return c, nil
}

func baseName(path string) string {
	base := filepath.Base(path)
	for _, ending := range []string{".yaml", ".yml"} {
		base = strings.TrimSuffix(base, ending)
	}
	return base
}

func shipped(name string) ([]byte, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	data, err := configs.FS.ReadFile(name + ".yaml")
	return data, err == nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("over %d bytes; not a settings file", maxFile)
	}
	return data, err
}

// reason drops the path that the os package repeats.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
