package agent

import (
	"os"
	"testing"

	"haul/internal/kernel/kerneltest"
	"haul/internal/run/runtest"
)

func TestMain(m *testing.M) {
	kerneltest.OneCore()
	done := runtest.Memory()
	code := m.Run()
	done()
	os.Exit(code)
}
