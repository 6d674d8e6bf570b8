package cu

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// unpack returns a decoder for all modules, which any number of goroutines can use.
var unpack = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0))
})

// Inflate decompresses PTX that scripts/ptx has compressed. It returns an error if the data is
// damaged.
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
