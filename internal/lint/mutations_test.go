package lint

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestFaultsCanBePlanted: every fault of scripts/mutations.txt is found in the source as it stands,
// once, and compiles. Whether the tests notice it is for scripts/mutate to say, which takes
// minutes; a fault that cannot be planted is noticed here.
func TestFaultsCanBePlanted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts/mutate ends a test's children by their process group, which Windows has not")
	}
	list := exec.Command("go", "run", "./scripts/_mutate", "-list")
	list.Dir = filepath.Join("..", "..")
	var stale bytes.Buffer
	list.Stderr = &stale
	if err := list.Run(); err != nil {
		t.Errorf("scripts/mutate --list: %v\n%s", err, stale.String())
	}
}
