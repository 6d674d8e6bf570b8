package comm

import (
	"strings"
	"testing"
	"unsafe"
)

// TestNCCLOpens needs the library but no GPU: all functions are found, rank 0 can create a
// communicator's id, and signal handlers are unchanged.
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
