package cu

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// unpack reads all modules, from any number of goroutines.
var unpack = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0))
})

// Inflate gives the text of PTX that scripts/ptx has compressed, or an error where it was damaged.
func Inflate(packed []byte) ([]byte, error) {
	z, err := unpack()
	if err != nil {
		return nil, fmt.Errorf("inflate PTX: %w", err)
	}
	text, err := z.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("inflate PTX: %w", err)
	}
	return text, nil
}
