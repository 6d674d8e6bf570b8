package pickle

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Encode writes int64, float64, Tuple and []any (a list) as protocol 2, which every Python since
// 2.3 reads.
func Encode(w io.Writer, v any) error {
	out := bufio.NewWriter(w)
	out.Write([]byte{0x80, 2})
	if err := encode(out, v); err != nil {
		return err
	}
	out.WriteByte('.')
	return out.Flush() // which tells of any write before it
}

func encode(out *bufio.Writer, v any) error {
	items, end := []any(nil), byte('e')
	switch v := v.(type) {
	case float64:
		out.WriteByte('G')
		out.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
		return nil
	case int64:
		out.Write([]byte{0x8a, 8}) // LONG1
		out.Write(binary.LittleEndian.AppendUint64(nil, uint64(v)))
		return nil
	case Tuple:
		items, end = v, 't'
	case []any:
		items = v
		out.WriteByte(']')
	default:
		return fmt.Errorf("pickle: a %T cannot be written", v)
	}
	out.WriteByte('(')
	for _, item := range items {
		if err := encode(out, item); err != nil {
			return err
		}
	}
	out.WriteByte(end)
	return nil
}
