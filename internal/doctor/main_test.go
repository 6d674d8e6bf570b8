package doctor

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a fifth of the time went into collecting what a trace leaves
	os.Exit(m.Run())
}
