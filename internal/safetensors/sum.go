package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// Files with metadata carry their CRC-32C in two entries of it: keySum has the digits, keySummed
// says that they must be there, so that a damaged keySum is no file without a sum. The sum is over
// all bytes of the file, with zeros in place of its digits.
const (
	keySum    = "haul.crc32c"
	keySummed = "haul.summed"
	noSum     = "00000000"
)

// ErrDamaged says that a file is not the one that was written.
var ErrDamaged = errors.New("damaged: its checksum is not that of its content: copy it again, or take another checkpoint")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var sumField = []byte(`"` + keySum + `":"`)

// sumAt is where the digits of the sum stand in a header, -1 where they do not.
func sumAt(header []byte) int {
	at := bytes.Index(header, sumField)
	if at < 0 || at+len(sumField)+len(noSum) >= len(header) || header[at+len(sumField)+len(noSum)] != '"' {
		return -1
	}
	return at + len(sumField)
}

// sumOf is the sum of a file's parts; digits is where it stands in the header.
func sumOf(length, header []byte, digits int, tensors func(add func(data []byte))) string {
	sum := crc32.Checksum(length, castagnoli)
	sum = crc32.Update(sum, castagnoli, header[:digits])
	sum = crc32.Update(sum, castagnoli, []byte(noSum))
	sum = crc32.Update(sum, castagnoli, header[digits+len(noSum):])
	tensors(func(data []byte) { sum = crc32.Update(sum, castagnoli, data) })
	return fmt.Sprintf("%08x", sum)
}

// checkSum compares a file with the sum in its header, and takes both entries out of the metadata.
func (f *File) checkSum(length, header, data []byte) error {
	stated, has := f.Metadata[keySum]
	_, must := f.Metadata[keySummed]
	if !has && !must {
		return nil
	}
	digits := sumAt(header)
	if !has || !must || digits < 0 || stated != sumOf(length, header, digits, func(add func([]byte)) { add(data) }) {
		return ErrDamaged
	}
	delete(f.Metadata, keySum)
	delete(f.Metadata, keySummed)
	f.Summed = true
	return nil
}
