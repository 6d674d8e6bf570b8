package testset

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"haul/internal/pickle"
)

// Instances from PyTorch's .pt files: an archive with a pickle (data.pkl) that says what the
// tensors are, and their numbers beside it.

// maxTorchPickle bounds the pickle, which holds names and shapes only.
const maxTorchPickle = 1 << 20

// storageTypes are the types of numbers by the name of a storage.
var storageTypes = map[string]string{"FloatStorage": "f4", "DoubleStorage": "f8", "LongStorage": "i8", "IntStorage": "i4"}

// readTorch reads a dictionary of tensors by the names of an .npz: POMO's test sets are such files.
func readTorch(r io.ReaderAt, size int64) (*Set, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a .pt file of PyTorch 1.6 or later: %v", err)
	}
	files := map[string]*zip.File{}
	for _, f := range z.File {
		if _, name, ok := strings.Cut(f.Name, "/"); ok { // below a folder named after the file
			files[name] = f
		}
	}
	main, ok := files["data.pkl"]
	if !ok {
		return nil, errors.New("not a .pt file of PyTorch: it has no data.pkl")
	}
	text, err := readEntry(main, maxTorchPickle)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	v, err := pickle.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	if c, ok := v.(*pickle.Call); ok && c.What.Name == "OrderedDict" {
		v = c.State
	}
	d, ok := v.(*pickle.Dict)
	if !ok {
		return nil, errors.New("it holds no dictionary of tensors by name")
	}
	if byteOrder, ok := files["byteorder"]; ok {
		if text, err := readEntry(byteOrder, 16); err != nil || string(text) != "little" {
			return nil, errors.New("its numbers have their bytes in reverse order")
		}
	}
	left := int64(maxNumbers)
	return readDict(d, func(v any) (pickle.Array, bool, error) { return tensor(v, files, &left) })
}

// readEntry reads an entry of at most that many bytes.
func readEntry(f *zip.File, most int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return data, err
}

// tensor reads the numbers of _rebuild_tensor_v2(storage, offset, size, stride, ...), whose storage
// is (_, type, key, device, count).
func tensor(v any, files map[string]*zip.File, left *int64) (a pickle.Array, ok bool, err error) {
	c, ok := v.(*pickle.Call)
	if !ok || c.What.Name != "_rebuild_tensor_v2" {
		return a, false, nil
	}
	broken := errors.New("a tensor without its numbers")
	if len(c.Args) < 4 {
		return a, true, broken
	}
	storage, _ := c.Args[0].(pickle.Persistent)
	id, _ := storage.ID.(pickle.Tuple)
	offset, okOffset := c.Args[1].(int64)
	shape, okShape := c.Args[2].(pickle.Tuple)
	stride, okStride := c.Args[3].(pickle.Tuple)
	if len(id) < 5 || !okOffset || !okShape || !okStride || len(shape) != len(stride) {
		return a, true, broken
	}
	kind, _ := id[1].(pickle.Global)
	key, _ := id[2].(string)
	file := files["data/"+key]
	number, width, known := pickle.Numbers(storageTypes[kind.Name])
	if file == nil || !known {
		return a, true, broken
	}
	want := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		k, okK := shape[i].(int64)
		by, okBy := stride[i].(int64)
		if !okK || !okBy || k < 0 || k > *left || want*max(k, 1) > *left {
			return a, true, fmt.Errorf("more than %d numbers", maxNumbers)
		}
		if by != want && k > 1 {
			return a, true, errors.New("a tensor that is a view: save a copy made by contiguous().clone()")
		}
		want *= k
	}
	*left -= want
	data, err := readEntry(file, int64(width)*maxNumbers)
	switch {
	case err != nil:
		return a, true, err
	case offset < 0 || offset > maxNumbers || (offset+want)*int64(width) > int64(len(data)):
		return a, true, errors.New("a tensor larger than its storage")
	}
	for _, k := range shape {
		a.Shape = append(a.Shape, int(k.(int64)))
	}
	a.Data = make([]float64, want)
	for i := range a.Data {
		a.Data[i] = number(data[(int(offset)+i)*width:])
	}
	return a, true, nil
}
