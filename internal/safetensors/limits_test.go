package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func framed(header string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
}

// TestAHeaderOfMoreTensorsThanAnyNetworkHas: a hundred megabytes of entries would be read for
// minutes before the file is refused.
func TestAHeaderOfMoreTensorsThanAnyNetworkHas(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	for i := range maxTensors + 1 {
		fmt.Fprintf(&b, `"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},`, i)
	}
	data := framed(strings.TrimSuffix(b.String(), ",") + "}")
	if _, err := Read(bytes.NewReader(data), int64(len(data))); err == nil || !strings.Contains(err.Error(), "more than 100000 tensors") {
		t.Errorf("%v", err)
	}
}

// TestTensorsAreCheckedBeforeTheyAreRead: a file may be as large as its header says and hold
// nothing, so that its size is no reason to make room for it.
func TestTensorsAreCheckedBeforeTheyAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse.safetensors")
	const size = 60 << 30
	head := framed(fmt.Sprintf(`{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, int64(size)/4, int64(size)))
	if err := os.WriteFile(path, head, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(len(head))+size); err != nil {
		t.Skip("the disk has no sparse files: ", err)
	}
	no := errors.New("too large")
	_, err := LoadChecked(path, func(f *File, n int64) error {
		if len(f.Tensors) != 1 || f.Tensors[0].Data != nil || n != size {
			t.Errorf("the check is shown %+v, %d bytes", f.Tensors, n)
		}
		return no
	})
	if !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
}
