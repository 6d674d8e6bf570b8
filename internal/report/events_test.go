package report

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// seen is the content of an event.
type seen struct {
	step    uint64
	version string
	start   bool
	values  map[string]float32
}

// readRecords removes the framing.
func readRecords(t *testing.T, data []byte) [][]byte {
	t.Helper()
	var out [][]byte
	for len(data) > 0 {
		n := binary.LittleEndian.Uint64(data)
		if binary.LittleEndian.Uint32(data[8:]) != masked(data[:8]) {
			t.Fatal("the length's checksum is wrong")
		}
		body := data[12 : 12+n]
		if binary.LittleEndian.Uint32(data[12+n:]) != masked(body) {
			t.Fatal("the data's checksum is wrong")
		}
		out, data = append(out, body), data[16+n:]
	}
	return out
}

// fields visits a message's fields: numbers as uint64, messages and strings as bytes.
func fields(t *testing.T, b []byte, visit func(num protowire.Number, v uint64, bytes []byte)) {
	t.Helper()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		var v uint64
		var body []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var w uint32
			w, n = protowire.ConsumeFixed32(b)
			v = uint64(w)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			body, n = protowire.ConsumeBytes(b)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		visit(num, v, body)
	}
}

func readEvents(t *testing.T, path string) []seen {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []seen
	for _, body := range readRecords(t, data) {
		e := seen{values: map[string]float32{}}
		fields(t, body, func(num protowire.Number, v uint64, b []byte) {
			switch num {
			case eventStep:
				e.step = v
			case eventVersion:
				e.version = string(b)
			case eventSession:
				fields(t, b, func(num protowire.Number, v uint64, _ []byte) { e.start = num == sessionStatus && v == sessionStart })
			case eventSummary:
				fields(t, b, func(_ protowire.Number, _ uint64, value []byte) {
					var tag string
					fields(t, value, func(num protowire.Number, v uint64, b []byte) {
						if num == valueTag {
							tag = string(b)
						} else {
							e.values[tag] = math.Float32frombits(uint32(v))
						}
					})
				})
			}
		})
		out = append(out, e)
	}
	return out
}

// The mask of the CRC-32C of "123456789", 0xe3069283, computed by hand from TFRecord's definition.
func TestMaskedChecksum(t *testing.T) {
	const want = 0xc78ab0e5
	if got := masked([]byte("123456789")); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

func TestEventsReadBack(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, eventPrefix+"0000000001.haul.000")
	if err := os.WriteFile(stale, []byte("of the run that is overwritten"), 0o644); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0)
	f, err := openEvents(dir, false, 0, at)
	if err != nil {
		t.Fatal(err)
	}
	r, blind := rowOf(1), rowOf(2)
	blind.Val = nil
	if err := f.add(append(samples.scalars(r, 1, at), samples.scalars(blind, 2, at)...)); err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openEvents(dir, true, 1, at) // within the same second
	if err != nil {
		t.Fatal(err)
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 || slices.Contains(files, stale) {
		t.Fatalf("files are %v, %v", files, err)
	}
	first := readEvents(t, files[0])
	if len(first) != 3 || first[0].version != "brain.Event:2" || first[1].step != 1 || first[2].step != 2 {
		t.Fatalf("events are %v", first)
	}
	if got := first[1].values["val/cost"]; got != float32(*r.Val) {
		t.Errorf("val/cost is %v", got)
	}
	if _, ok := first[2].values["val/cost"]; ok || len(first[2].values) >= len(first[1].values) {
		t.Errorf("an epoch without validation has %v", first[2].values)
	}
	if second := readEvents(t, files[1]); len(second) != 2 || !second[1].start || second[1].step != 2 {
		t.Errorf("the restart is marked by %v; points from epoch 2 on are stale", fmt.Sprint(second))
	}
}

// TestAFolderWithBracketsLeavesOthersAlone: x[1] is the name of a folder, not a pattern for x1.
func TestAFolderWithBracketsLeavesOthersAlone(t *testing.T) {
	root := t.TempDir()
	other := filepath.Join(root, "x1", eventPrefix+"0000000001.haul.000")
	own := filepath.Join(root, "x[1]", eventPrefix+"0000000001.haul.000")
	for _, path := range []string{other, own} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("events"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openEvents(filepath.Dir(own), false, 0, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	f.close()
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the events of another run are gone: %v", err)
	}
	if _, err := os.Stat(own); err == nil {
		t.Error("the events of the run that is overwritten are still there")
	}
}

// TestAClockSetBackKeepsTheOrder: readers order event files by name. The file of a restart follows
// the existing ones, for any time of the clock.
func TestAClockSetBackKeepsTheOrder(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, at := range []int64{1_700_000_000, 1_600_000_000, 1_700_000_001} {
		f, err := openEvents(dir, len(names) > 0, 1, time.Unix(at, 0))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.f.Name())
		f.close()
	}
	if !slices.IsSorted(names) {
		t.Errorf("files in the order of their making are %v", names)
	}
}
