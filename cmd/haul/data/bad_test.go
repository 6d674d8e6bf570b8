package data_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// saveArrays writes a folder of .npy files: 600 transitions of 6 tasks in episodes of 5 steps,
// after spoil has had its way with the bytes of each array.
func saveArrays(t *testing.T, spoil func(name string, data []byte) []byte) string {
	t.Helper()
	const n = 600
	observations, actions, rewards, dones, tasks := make([]uint8, n), make([]int64, n), make([]float32, n), make([]uint8, n), make([]int32, n)
	for i := range n {
		observations[i], actions[i], rewards[i], dones[i], tasks[i] = uint8(i%5), int64(i%3), float32(i%100)/100, uint8(i%5/4), int32(i/100)
	}
	dir := t.TempDir()
	for name, of := range map[string]struct {
		kind    string
		numbers any
	}{"observations": {"|u1", observations}, "actions": {"<i8", actions}, "rewards": {"<f4", rewards}, "dones": {"|u1", dones}, "tasks": {"<i4", tasks}} {
		var out bytes.Buffer
		out.Write(arrayHead(of.kind, n))
		binary.Write(&out, binary.LittleEndian, of.numbers)
		data := out.Bytes()
		if spoil != nil {
			data = spoil(name, data)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".npy"), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// arrayHead is what comes before an array's numbers: 128 bytes.
func arrayHead(kind string, rows int64) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", kind, rows)
	head += strings.Repeat(" ", 117-len(head)) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	return append(out, head...)
}

// TestBadHistoriesAreRefusedInALine: whatever is wrong with somebody's arrays or file is said in
// one line that names the place, at once, and nothing is left behind.
func TestBadHistoriesAreRefusedInALine(t *testing.T) {
	const head = 128
	spoiled := func(array string, at int, with []byte) func(string, []byte) []byte {
		return func(name string, data []byte) []byte {
			if name == array {
				copy(data[head+at*len(with):], with)
			}
			return data
		}
	}
	number := func(v any) []byte {
		var b bytes.Buffer
		binary.Write(&b, binary.LittleEndian, v)
		return b.Bytes()
	}
	out := filepath.Join(t.TempDir(), "out.hist")
	for _, c := range []struct {
		name  string
		spoil func(string, []byte) []byte
		want  string
	}{
		{"NaN reward", spoiled("rewards", 417, number(float32(math.NaN()))), "the reward of transition 417 is NaN"},
		{"action out of range", spoiled("actions", 33, number(int64(64))), "the action of transition 33 is 64: want whole numbers from 0 to 63"},
		{"negative action", spoiled("actions", 33, number(int64(-1))), "the action of transition 33 is -1"},
		{"endless episode", spoiled("dones", 0, make([]byte, 600)), "no episode ends in 600 transitions: mark ends in dones"},
		{"cut end", func(name string, data []byte) []byte {
			if name == "rewards" {
				return data[:len(data)-6]
			}
			return data
		}, "rewards is cut short after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inprocess.Refused(t, []string{"data", "import", saveArrays(t, c.spoil), "--out", out}, cli.ExitFailed, c.want)
			if _, err := os.Stat(out); err == nil {
				t.Error("a file is left")
			}
		})
	}
	t.Run("arrays of holes", func(t *testing.T) {
		const rows = 100 << 30 / 8
		dir := t.TempDir()
		for name, kind := range map[string]string{"observations": "|u1", "actions": "<i8", "rewards": "<f4", "dones": "|u1", "tasks": "<i4"} {
			path := filepath.Join(dir, name+".npy")
			if err := os.WriteFile(path, arrayHead(kind, rows), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, head+rows*int64(kind[2]-'0')); err != nil {
				t.Skip("no holes here:", err)
			}
		}
		inprocess.Refused(t, []string{"data", "import", dir, "--out", out}, cli.ExitFailed, "an episode of more than 1048576 transitions ends nowhere before transition 1048576")
	})
	good := filepath.Join(t.TempDir(), "good.hist")
	if r := inprocess.Run(t, "data", "import", saveArrays(t, nil), "--out", good); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	for _, c := range []struct {
		name string
		size int64 // against the good one's
		want string
	}{{"file with a cut end", -1, "cut short"}, {"file of holes", 100 << 30, "bytes follow its end"}} {
		t.Run(c.name, func(t *testing.T) {
			data, err := os.ReadFile(good)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "bad.hist")
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, int64(len(data))+c.size); err != nil {
				t.Skip("no holes here:", err)
			}
			inprocess.Refused(t, []string{"data", "show", path}, cli.ExitFailed, c.want)
			inprocess.Refused(t, []string{"train", "--config", "ad_any", "--history", path, "--device", "cpu"}, cli.ExitFailed, c.want)
		})
	}
}
