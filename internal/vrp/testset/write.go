package testset

import (
	"archive/zip"
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"haul/internal/vrp"
)

// Write writes instances of equal size as .npz (arrays depot, locs, demand, capacity) or as Kool's
// .pkl, by the ending.
func Write(w io.Writer, ext string, problems []*vrp.Problem) error {
	for i, p := range problems {
		if err := p.Plain(); err != nil {
			name := cmp.Or(p.Name, fmt.Sprintf("instance %d", i))
			return fmt.Errorf("%s cannot be written as %s, which has arrays for plain problems only: %w", name, ext, err)
		}
	}
	switch ext {
	case ".npz":
		return writeNPZ(w, problems)
	case ".pkl":
		return writePickle(w, problems)
	}
	return fmt.Errorf("instances are written as .npz, as .pkl, or into a folder as .vrp files, not as %s", ext)
}

func writeNPZ(w io.Writer, problems []*vrp.Problem) error {
	b, n := len(problems), problems[0].N()
	depot, locs := make([]float64, 0, 2*b), make([]float64, 0, 2*b*n)
	demand, capacity := make([]int64, 0, b*n), make([]int64, 0, b)
	for _, p := range problems {
		if p.N() != n {
			return fmt.Errorf("an .npz has instances of one size, and these have %d and %d customers", n, p.N())
		}
		depot, capacity = append(depot, p.X[0], p.Y[0]), append(capacity, int64(p.Capacity))
		for j := 1; j <= n; j++ {
			locs, demand = append(locs, p.X[j], p.Y[j]), append(demand, int64(p.Demand[j]))
		}
	}
	z := zip.NewWriter(w)
	for _, a := range []struct {
		name, kind string
		data       any
		shape      []int
	}{{"depot", "<f8", depot, []int{b, 2}}, {"locs", "<f8", locs, []int{b, n, 2}}, {"demand", "<i8", demand, []int{b, n}}, {"capacity", "<i8", capacity, []int{b}}} {
		f, err := z.CreateHeader(&zip.FileHeader{Name: a.name + ".npy", Method: zip.Deflate})
		if err != nil {
			return err
		}
		if err := writeArray(f, a.kind, a.data, a.shape); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeArray writes NumPy's format 1.0: the header is padded with spaces to a multiple of 64 bytes.
func writeArray(w io.Writer, kind string, data any, shape []int) error {
	var dims strings.Builder
	for _, k := range shape {
		fmt.Fprintf(&dims, "%d, ", k)
	}
	text := strings.TrimSuffix(dims.String(), " ")
	if len(shape) > 1 {
		text = strings.TrimSuffix(text, ",")
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, text)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "\x93NUMPY\x01\x00%s%s", binary.LittleEndian.AppendUint16(nil, uint16(len(head))), head)
	if err := binary.Write(out, binary.LittleEndian, data); err != nil {
		return err
	}
	return out.Flush()
}
