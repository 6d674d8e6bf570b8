package report

import (
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEventsOnTheWire compares event files with TensorFlow's event.proto and summary.proto byte by
// byte, without the names of this package. Event has wall_time = 1 (double), step = 2 (int64),
// file_version = 3 (string), summary = 5, session_log = 7; Summary has value = 1; Value has tag = 1
// and simple_value = 2 (float); SessionLog has status = 1, START = 1. A tag is number<<3 | wire
// type: 0 varint, 1 eight bytes, 2 length, 5 four bytes.
func TestEventsOnTheWire(t *testing.T) {
	type row struct {
		Epoch int     `csv:"epoch"`
		Loss  float64 `csv:"loss" tb:"a/b"`
	}
	at := time.Unix(1_700_000_000, 500_000_000)
	wall := "09" + hex.EncodeToString(le64(math.Float64bits(1_700_000_000.5)))
	dir := t.TempDir()
	f, err := openEvents(dir, true, 6, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.add(tableOf(new(row)).scalars(&row{Epoch: 300, Loss: 1.5}, 300, at)); err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, body := range readRecords(t, data) {
		got = append(got, hex.EncodeToString(body))
	}
	want := []string{
		wall + "1000" + "1a0d" + hex.EncodeToString([]byte("brain.Event:2")),
		wall + "1007" + "3a02" + "0801",
		wall + "10ac02" + "2a0c" + "0a0a" + "0a03" + hex.EncodeToString([]byte("a/b")) + "15" + "0000c03f",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func le64(v uint64) (out []byte) {
	for i := range 8 {
		out = append(out, byte(v>>(8*i)))
	}
	return out
}
