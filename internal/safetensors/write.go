package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// metadataKey is the header entry that holds strings instead of a tensor.
const metadataKey = "__metadata__"

// Write writes a file. The same content always gives the same bytes.
func Write(w io.Writer, f *File) error {
	header, err := f.header()
	if err != nil {
		return err
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	if digits := sumAt(header); len(f.Metadata) > 0 {
		copy(header[digits:], sumOf(length, header, digits, func(add func([]byte)) {
			for _, t := range f.Tensors {
				add(t.Data)
			}
		}))
	}
	if _, err := w.Write(length); err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range f.Tensors {
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// header is the JSON in tensor order, padded with spaces to a multiple of eight bytes.
func (f *File) header() ([]byte, error) {
	var out []byte
	out = append(out, '{')
	add := func(name string, value any) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		for i, v := range []any{name, value} {
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			if i == 1 {
				out = append(out, ':')
			}
			out = append(out, text...)
		}
		return nil
	}
	if len(f.Metadata) > 0 {
		with := maps.Clone(f.Metadata)
		with[keySum], with[keySummed] = noSum, "1"
		if err := add(metadataKey, with); err != nil { // Marshal sorts the keys
			return nil, err
		}
	}
	seen := map[string]bool{metadataKey: true}
	at := int64(0)
	for _, t := range f.Tensors {
		size, ok := bytesOf(t.DType, t.Shape)
		switch {
		case seen[t.Name]:
			return nil, fmt.Errorf("tensor name %q is taken", t.Name)
		case t.DType.Size() == 0:
			return nil, fmt.Errorf("%s: unknown type %q", t.Name, t.DType)
		case !ok || size != int64(len(t.Data)):
			return nil, fmt.Errorf("%s: %d bytes do not fill %s %v", t.Name, len(t.Data), t.DType, t.Shape)
		}
		seen[t.Name] = true
		e := entry{DType: t.DType, Shape: slices.Clone(t.Shape), Offsets: [2]int64{at, at + size}}
		if e.Shape == nil {
			e.Shape = []int{} // a scalar's shape is [], never null
		}
		if err := add(t.Name, e); err != nil {
			return nil, err
		}
		at += size
	}
	out = append(out, '}')
	for len(out)%8 != 0 {
		out = append(out, ' ')
	}
	if len(out) > maxHeader {
		return nil, fmt.Errorf("header takes %d bytes, the format allows %d", len(out), maxHeader)
	}
	return out, nil
}

// entry is a tensor's row of the header.
type entry struct {
	DType   DType    `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}
