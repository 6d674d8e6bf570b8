package cu

import (
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestInflate: a module is restored, and truncated or damaged data is an error.
func TestInflate(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := z.EncodeAll([]byte(".version 7.5\n"), nil)
	if text, err := Inflate(packed); err != nil || string(text) != ".version 7.5\n" {
		t.Errorf("%q, %v", text, err)
	}
	damaged := append([]byte(nil), packed...)
	damaged[len(damaged)-1] ^= 1 // a byte of the checksum
	for name, bad := range map[string][]byte{"cut": packed[:len(packed)-1], "damaged": damaged, "no frame": []byte("PTX")} {
		if text, err := Inflate(bad); err == nil {
			t.Errorf("%s: %q", name, text)
		}
	}
}
