package ppo

import (
	"os"
	"testing"

	"haul/internal/run/runtest"
)

func TestMain(m *testing.M) {
	done := runtest.Memory()
	code := m.Run()
	done()
	os.Exit(code)
}
