package safetensors

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// The header is padded with spaces so that the data begins at a multiple of eight bytes, which
// readers that map a file count on, whatever the length of its names.
func TestDataBeginsAligned(t *testing.T) {
	for n := range 17 {
		f := &File{Metadata: map[string]string{"k": strings.Repeat("x", n)}, Tensors: []Tensor{{Name: "a", DType: F32, Shape: []int{1}, Data: []byte{1, 2, 3, 4}}}}
		var b bytes.Buffer
		if err := Write(&b, f); err != nil {
			t.Fatal(err)
		}
		head := int(binary.LittleEndian.Uint64(b.Bytes()))
		if head%8 != 0 || b.Len() != 8+head+4 {
			t.Errorf("%d characters: a header of %d bytes in a file of %d", n, head, b.Len())
		}
		if end := b.Bytes()[8+head-1]; end != ' ' && end != '}' {
			t.Errorf("%d characters: the header ends in %q", n, end)
		}
	}
}
