package draw

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"io"
)

// writePNG writes an opaque picture. Package image/png tries five filters per row and compresses
// thoroughly, which takes longer than drawing a page of lines. writePNG stores each row as the
// difference from the previous one, which is mostly zero, and compresses in one pass. The file is a
// fifth larger, and a command of a second takes almost half the time.
func writePNG(w io.Writer, img image.Image) error {
	m, ok := img.(*image.RGBA)
	if !ok || !m.Opaque() { // transparent colours would need a division by their opacity
		return png.Encode(w, img)
	}
	const (
		signature = "\x89PNG\r\n\x1a\n"
		header    = "\x08\x06\x00\x00\x00" // 8 bits each of red, green, blue and opacity; rows in order
		above     = 2                      // the filter: difference from the previous row
	)
	size := m.Rect.Size()
	rows := [][]byte{make([]byte, 1+4*size.X), make([]byte, 4*size.X)} // a row with its filter, a row of zeros
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		return err
	}
	last, out := rows[1], rows[0]
	out[0] = above
	for y := range size.Y {
		row := m.Pix[y*m.Stride : y*m.Stride+4*size.X]
		if bytes.Equal(row, last) {
			clear(out[1:])
		} else {
			for i, v := range row {
				out[1+i] = v - last[i]
			}
		}
		last = row
		if _, err := z.Write(out); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(size.X)), uint32(size.Y))
	file := []byte(signature)
	file = chunk(file, "IHDR", append(ihdr, header...))
	file = chunk(file, "IDAT", packed.Bytes())
	file = chunk(file, "IEND", nil)
	_, err = w.Write(file)
	return err
}

// chunk appends a chunk of a PNG file: its length, name, data and checksum.
func chunk(file []byte, name string, data []byte) []byte {
	file = binary.BigEndian.AppendUint32(file, uint32(len(data)))
	from := len(file)
	file = append(append(file, name...), data...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(file[from:]))
}
