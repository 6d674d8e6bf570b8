package comm

import (
	"strings"
	"testing"
	"unsafe"
)

// TestNCCLOpens needs the library and no card: its functions are found, and rank 0 can draw a
// communicator's name. Signals are as they were.
func TestNCCLOpens(t *testing.T) {
	before := readSignals()
	c, err := openNCCL()
	if err != nil {
		t.Skip("needs libnccl.so.2 (HAUL_NCCL=path): ", err)
	}
	if !strings.HasPrefix(c.name(), "NCCL 2.") {
		t.Errorf("version %q", c.name())
	}
	var id uniqueID
	if err := c.check("ncclGetUniqueId", c.getUniqueID(unsafe.Pointer(&id))); err != nil || id == (uniqueID{}) {
		t.Errorf("no name for a communicator: %v", err)
	}
	if after := readSignals(); after != before {
		t.Error("opening the library has changed signal handlers")
	}
	if err := c.check("ncclX", 4); err == nil || !strings.Contains(err.Error(), "ncclX: ") {
		t.Errorf("an error without NCCL's words: %v", err)
	}
}

func TestNoNCCLNamesThePackages(t *testing.T) {
	t.Setenv("HAUL_NCCL", "/nowhere/libnccl.so.2")
	_, err := openNCCL()
	if err == nil || !strings.Contains(err.Error(), "nvidia-nccl-cu12") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}
