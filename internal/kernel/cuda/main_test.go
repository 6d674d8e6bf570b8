package cuda_test

import (
	"fmt"
	"os"
	"testing"

	"haul/internal/cu/cutest"
)

// TestMain puts the interpreted card that the environment asks for in the place of a driver's.
func TestMain(m *testing.M) {
	if err := cutest.Wanted(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
