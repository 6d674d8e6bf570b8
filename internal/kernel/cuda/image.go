package cuda

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"haul/internal/cu"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/dense"
	"haul/internal/kernel/cuda/optimizer"
	"haul/internal/kernel/cuda/routing"
	"haul/internal/kernel/cuda/sequence"
)

// peaks has the kernels that measure the card.
//
//go:embed ptx/*.ptx.zst
var peaks embed.FS

// images are the kernels of all families. No two have a module of the same name.
var images = []embed.FS{attention.PTX, dense.PTX, optimizer.PTX, routing.PTX, sequence.PTX, peaks}

// modules returns the names of all that is embedded.
func modules() ([]string, error) {
	var names []string
	for _, family := range images {
		files, err := fs.Glob(family, "ptx/*.ptx.zst")
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "ptx/"), ".ptx.zst"))
		}
	}
	return names, nil
}

// readImage reads a file of images. Tests put other modules in their place.
var readImage = readFamilies

// readFamilies reads a file of the family that has it.
func readFamilies(name string) ([]byte, error) {
	for _, family := range images {
		if packed, err := family.ReadFile(name); err == nil {
			return packed, nil
		}
	}
	return nil, fs.ErrNotExist
}

// image is the PTX of a module.
func image(module string) ([]byte, error) {
	packed, err := readImage("ptx/" + module + ".ptx.zst")
	if err != nil {
		return nil, fmt.Errorf("no kernels named %s are embedded", module)
	}
	text, err := cu.Inflate(packed)
	if err != nil {
		return nil, fmt.Errorf("kernels %s: %w", module, err)
	}
	return text, nil
}
