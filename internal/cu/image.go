package cu

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// Inflate gives the text of PTX that scripts/ptx has compressed, or an error where it was damaged.
func Inflate(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("inflate PTX: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("inflate PTX: %w", err)
	}
	return text, nil
}
