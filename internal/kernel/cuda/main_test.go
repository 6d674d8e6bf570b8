package cuda_test

import (
	"fmt"
	"os"
	"testing"

	"haul/internal/cu/cutest"
	"haul/internal/kernel/cuda"
)

// imagesVariable names a folder in the environment: its modules take the place of those that are
// embedded. scripts/mutate --cuda tries faults by it without building anew.
const imagesVariable = "HAUL_PTX"

// TestMain puts the interpreted card that the environment asks for in the place of a driver's, and
// keeps the list of the kernels that have run where one is asked for.
func TestMain(m *testing.M) {
	if err := cutest.Wanted(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if dir := os.Getenv(imagesVariable); dir != "" {
		cuda.SetImages(dir)
	}
	code := m.Run()
	if path := os.Getenv(modulesVariable); path != "" {
		if err := keepModules(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 2
		}
	}
	os.Exit(code)
}
