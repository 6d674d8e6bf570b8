package recurrent

import (
	"os"
	"testing"

	"haul/internal/kernel/kerneltest"
)

func TestMain(m *testing.M) {
	kerneltest.OneCore()
	os.Exit(m.Run())
}
