package files

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"haul/internal/vrp"
	"haul/internal/vrp/vrptest"
)

// update rewrites the golden files of this package in place of comparing with them.
var update = flag.Bool("update", false, "rewrite golden files")

// frozenPath holds what Haul's own JSON is: per 100 drawn problems a line with the digest of their
// text, and a line with a mark per damaged text, + where it is read and - where it is refused.
const frozenPath = "testdata/json_frozen.txt"

// TestJSONIsFrozen compares the text of 3,000 drawn problems, and which of 6,000 damaged texts are
// problems, with the golden file. Every text that is read and written again is the same text.
func TestJSONIsFrozen(t *testing.T) {
	r := rand.New(rand.NewPCG(55, 1))
	var got strings.Builder
	for block := range 30 {
		sum, marks := sha256.New(), make([]byte, 0, 200)
		for range 100 {
			var b bytes.Buffer
			if err := WriteJSON(&b, vrptest.Draw(r)); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			_, _ = sum.Write(b.Bytes())
			for _, broken := range [][]byte{damaged(r, []byte(text)), otherDigit(r, []byte(text))} {
				p, err := ReadJSON(bytes.NewReader(broken), "f")
				if err != nil {
					if !strings.HasPrefix(err.Error(), "f") || strings.ContainsAny(err.Error(), "\r\n") {
						t.Fatalf("not one line with its place: %q", err)
					}
					marks = append(marks, '-')
					continue
				}
				marks = append(marks, '+')
				checkRewrite(t, p)
			}
		}
		fmt.Fprintf(&got, "%d %x\n%s\n", block, sum.Sum(nil)[:8], marks)
	}
	golden(t, frozenPath, got.String())
}

// otherDigit changes one digit.
func otherDigit(r *rand.Rand, text []byte) []byte {
	for {
		if at := r.IntN(len(text)); text[at] >= '0' && text[at] <= '9' {
			text[at] = byte('0' + r.IntN(10))
			return text
		}
	}
}

// checkRewrite writes a problem, reads that text and compares what is written of it again.
func checkRewrite(t *testing.T, p *vrp.Problem) {
	t.Helper()
	var first, second bytes.Buffer
	if err := WriteJSON(&first, p); err != nil {
		t.Fatal(err)
	}
	text := first.String()
	q, err := ReadJSON(&first, "f")
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if err := WriteJSON(&second, q); err != nil {
		t.Fatal(err)
	}
	if second.String() != text {
		t.Fatalf("written again it is another text:\n%s%s", text, second.String())
	}
}

// golden compares a text with a golden file, line by line.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(was), len(is)) {
		a, b := "", ""
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a != b {
			t.Errorf("%s:%d: -update records an intended change\nwas %s\nis  %s", path, i+1, a, b)
		}
	}
}

// large is 100,000 customers with coordinates, demands, windows and service times, in JSON.
func large(tb testing.TB) []byte {
	tb.Helper()
	const n = 100_001
	r := rand.New(rand.NewPCG(100, 1))
	p := &vrp.Problem{Name: "large", Capacity: 100, Demand: make([]int32, n), Windows: make([][]vrp.Window, n), Service: make([]float64, n)}
	for v := range n {
		p.X, p.Y = append(p.X, float64(r.IntN(1000))), append(p.Y, float64(r.IntN(1000)))
		if v == 0 {
			continue
		}
		from := float64(r.IntN(600))
		p.Demand[v], p.Service[v], p.Windows[v] = 1+r.Int32N(9), float64(r.IntN(30)), []vrp.Window{{From: from, To: from + 60}}
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, p); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// BenchmarkReadJSON100k reads 100,000 customers by ReadProblem, as haul solve does.
func BenchmarkReadJSON100k(b *testing.B) {
	text := large(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := ReadProblem(bytes.NewReader(text), "large.json", Options{}); err != nil || p.N() != 100_000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriteJSON100k writes the same problem.
func BenchmarkWriteJSON100k(b *testing.B) {
	p, err := ReadJSON(bytes.NewReader(large(b)), "large.json")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteJSON(&bytes.Buffer{}, p); err != nil {
			b.Fatal(err)
		}
	}
}
