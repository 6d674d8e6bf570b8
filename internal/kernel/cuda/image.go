package cuda

import (
	"embed"
	"fmt"

	"haul/internal/cu"
)

// images are the kernels, a module per file, as scripts/ptx makes them from src. They stay
// compressed until a program needs one.
//
//go:embed ptx/*.ptx.zst
var images embed.FS

// readImage reads a file of images. Tests put other modules in their place.
var readImage = images.ReadFile

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
