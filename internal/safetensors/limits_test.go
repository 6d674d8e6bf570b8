package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/limits"
)

func framed(header string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
}

// entries is a stream of a file whose header has n tensors without elements.
type entries struct {
	n, at int
	left  []byte
	read  int64
}

const entryBytes = len(`,"t000000000":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`)

func newEntries(n int) (*entries, int64) {
	header := int64(n*entryBytes + 1)
	return &entries{n: n, left: binary.LittleEndian.AppendUint64(nil, uint64(header))}, 8 + header
}

func (e *entries) Read(b []byte) (int, error) {
	if len(e.left) == 0 && e.at > e.n {
		return 0, io.EOF
	}
	if len(e.left) == 0 {
		sep := byte(',')
		if e.at == 0 {
			sep = '{'
		}
		e.left = fmt.Appendf(nil, `%c"t%09d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, sep, e.at)
		if e.at == e.n {
			e.left = []byte("}")
		}
		e.at++
	}
	n := copy(b, e.left)
	e.left, e.read = e.left[n:], e.read+int64(n)
	return n, nil
}

// TestTensorsAreLimited: as many tensors as the limit allows are read, one more is refused by the
// limit's name, and a thousand times as many before their header is read: entries of a hundred
// megabytes would be read for minutes.
func TestTensorsAreLimited(t *testing.T) {
	most := int(limits.Table[limits.Tensors].Command)
	if limits.Table[limits.Tensors].Service != limits.Table[limits.Tensors].Command {
		t.Error("one reader has two limits")
	}
	for _, n := range []int{most, most + 1, 1000 * most} {
		in, size := newEntries(n)
		f, err := Read(in, size)
		var over *limits.Error
		switch {
		case n == most && (err != nil || len(f.Tensors) != most):
			t.Errorf("at the limit: %v", err)
		case n == most+1 && (!errors.As(err, &over) || over.Limit != limits.Tensors || !strings.Contains(err.Error(), "it has more than 100000 tensors of a checkpoint: the limit tensors is 100000; no checkpoint needs more")):
			t.Errorf("one above: %v", err)
		case n > most+1 && (err == nil || in.read > 8 || strings.Contains(err.Error(), "\n")):
			t.Errorf("far above: %v after %d bytes", err, in.read)
		}
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
