package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"haul/internal/limits"
)

// maxHeader is the format's own bound.
const maxHeader = 100_000_000

// Load reads a file from disk. Errors do not repeat the path.
func Load(path string) (*File, error) { return LoadChecked(path, nil) }

// LoadChecked is Load that first shows the header: check, which may be nil, is given the metadata
// and the tensors without their data, and how many bytes these take. What it refuses is never read.
func LoadChecked(path string, check func(f *File, bytes int64) error) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return read(f, info.Size(), check)
}

// cause drops the path that the os package repeats.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Read reads a whole file of that many bytes.
func Read(r io.Reader, size int64) (*File, error) { return read(r, size, nil) }

func read(r io.Reader, size int64, check func(*File, int64) error) (*File, error) {
	if size < 8 {
		return nil, fmt.Errorf("not a safetensors file: %d bytes, the header's length alone takes 8", size)
	}
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, truncated(err)
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader {
		return nil, fmt.Errorf("not a safetensors file: it would have a header of %d bytes", n)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("truncated: the header takes %d bytes, the file has %d after its length: copy it again", n, size-8)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, truncated(err)
	}
	f, end, err := parseHeader(header)
	if err != nil {
		return nil, err
	}
	switch have := size - 8 - int64(n); {
	case end > have:
		return nil, fmt.Errorf("truncated: the tensors take %d bytes, the file has %d: copy it again", end, have)
	case end < have:
		return nil, fmt.Errorf("%d bytes follow the last tensor", have-end)
	}
	if check != nil {
		if err := check(f, end); err != nil {
			return nil, err
		}
	}
	data := make([]byte, end)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, truncated(err)
	}
	if err := f.checkSum(head[:], header, data); err != nil {
		return nil, err
	}
	at := int64(0)
	for i := range f.Tensors {
		t := &f.Tensors[i]
		n, _ := bytesOf(t.DType, t.Shape) // parseHeader has checked it
		t.Data = data[at : at+n : at+n]
		at += n
	}
	return f, nil
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("truncated: the file ended early: copy it again")
	}
	return err
}

// parseHeader returns the tensors in the order of their bytes, and how many bytes they take.
func parseHeader(header []byte) (*File, int64, error) {
	if len(header) == 0 || header[0] != '{' || !utf8.Valid(header) {
		return nil, 0, errors.New("not a safetensors file: the header is no JSON object")
	}
	f := &File{}
	places := map[string][2]int64{}
	err := eachField(header, func(name string, raw json.RawMessage) error {
		if name == metadataKey {
			return parseMetadata(raw, f)
		}
		if most := (*limits.Set)(nil); int64(len(f.Tensors)) == most.Most(limits.Tensors) { // before minutes pass
			return most.Beyond(limits.Tensors)
		}
		e, err := parseEntry(name, raw)
		if err != nil {
			return err
		}
		places[name] = e.Offsets
		f.Tensors = append(f.Tensors, Tensor{Name: name, DType: e.DType, Shape: e.Shape})
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(f.Tensors, func(a, b Tensor) int {
		pa, pb := places[a.Name], places[b.Name]
		return slices.Compare(pa[:], pb[:])
	})
	end := int64(0)
	for _, t := range f.Tensors {
		p := places[t.Name]
		if p[0] != end {
			return nil, 0, fmt.Errorf("%s starts at byte %d of the data, the tensor before it ends at %d", t.Name, p[0], end)
		}
		end = p[1]
	}
	return f, end, nil
}

func parseMetadata(raw json.RawMessage, f *File) error {
	f.Metadata = map[string]string{}
	return eachField(raw, func(key string, value json.RawMessage) error {
		var s *string
		if err := json.Unmarshal(value, &s); err != nil || s == nil {
			return fmt.Errorf("metadata %q is no string", key)
		}
		f.Metadata[key] = *s
		return nil
	})
}

func parseEntry(name string, raw json.RawMessage) (entry, error) {
	var e entry
	var offsets []int64
	fields := 0
	// Three keys and one string have eight quotation marks, so that nothing is there twice and
	// nothing else is there: most entries are read by this alone.
	var plain struct {
		DType   DType   `json:"dtype"`
		Shape   []int   `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	exact := bytes.Contains(raw, []byte(`"dtype"`)) && bytes.Contains(raw, []byte(`"shape"`)) && bytes.Contains(raw, []byte(`"data_offsets"`)) // Go's decoder passes over case
	if exact && bytes.Count(raw, []byte{'"'}) == 8 && json.Unmarshal(raw, &plain) == nil && plain.DType != "" && plain.Shape != nil && len(plain.Offsets) == 2 {
		return e.checked(name, plain.DType, plain.Shape, plain.Offsets)
	}
	err := eachField(raw, func(key string, value json.RawMessage) error {
		fields++
		switch key {
		case "dtype":
			return json.Unmarshal(value, &e.DType)
		case "shape":
			return json.Unmarshal(value, &e.Shape)
		case "data_offsets":
			return json.Unmarshal(value, &offsets)
		}
		return fmt.Errorf("unknown field %q", key)
	})
	if err == nil && (fields != 3 || e.Shape == nil || len(offsets) != 2) {
		err = errors.New("it needs dtype, shape and two data_offsets")
	}
	if err != nil {
		return e, fmt.Errorf("bad header entry %q: %w", name, err)
	}
	return e.checked(name, e.DType, e.Shape, offsets)
}

// checked fills the entry in where its bytes fill its shape.
func (e entry) checked(name string, t DType, shape []int, offsets []int64) (entry, error) {
	e.DType, e.Shape, e.Offsets = t, shape, [2]int64(offsets)
	if e.DType.Size() == 0 {
		return e, fmt.Errorf("%s has type %q; known are %s, %s and %s", name, e.DType, F32, F64, I32)
	}
	size, ok := bytesOf(e.DType, e.Shape)
	if !ok || e.Offsets[0] < 0 || e.Offsets[1]-e.Offsets[0] != size {
		return e, fmt.Errorf("%s: bytes %d to %d do not fill %s %v", name, e.Offsets[0], e.Offsets[1], e.DType, e.Shape)
	}
	return e, nil
}

// eachField visits an object's fields in order; a repeated one is an error, which a map would hide.
func eachField(object []byte, visit func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("broken JSON: %w", err)
		}
		key := t.(string) // the decoder gives nothing else where a key stands
		if seen[key] {
			return fmt.Errorf("%q appears twice in the header", key)
		}
		seen[key] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("broken JSON: %w", err)
		}
		if err := visit(key, raw); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("broken JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the header's JSON object")
	}
	return nil
}
