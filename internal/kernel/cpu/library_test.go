//go:build linux || darwin

package cpu

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// fortran is sgemm_ as a library has it, for fakes: arguments are addresses, matrices lie by
// columns.
func fortran(spoil func(c []float32)) uintptr {
	return purego.NewCallback(func(turnA, turnB *byte, m, n, k *int32, alpha, a *float32, lda *int32, b *float32, ldb *int32, beta, c *float32, ldc *int32) uintptr {
		span := func(turn byte, rows, columns, ld int32) int32 {
			if turn == 'T' {
				rows, columns = columns, rows
			}
			return (columns-1)*ld + rows
		}
		as, bs, cs := unsafe.Slice(a, span(*turnA, *m, *k, *lda)), unsafe.Slice(b, span(*turnB, *k, *n, *ldb)), unsafe.Slice(c, span('N', *m, *n, *ldc))
		// steps are how far the next row and the next column lie
		steps := func(turn byte, ld int32) (int32, int32) {
			if turn == 'T' {
				return ld, 1
			}
			return 1, ld
		}
		aRow, aColumn := steps(*turnA, *lda)
		bRow, bColumn := steps(*turnB, *ldb)
		for j := range *n {
			for i := range *m {
				sum := float32(0)
				for l := range *k {
					sum += as[i*aRow+l*aColumn] * bs[l*bRow+j*bColumn]
				}
				sum *= *alpha
				if *beta != 0 {
					sum += *beta * cs[j**ldc+i]
				}
				cs[j**ldc+i] = sum
			}
		}
		if spoil != nil {
			spoil(cs)
		}
		return 0
	})
}

func fakeContest(sgemm uintptr, err error, speed float64) contest {
	return contest{own: sets[0], open: func(string) (uintptr, error) { return sgemm, err }, race: func(own, theirs *primitives) float64 { return speed }}
}

// TestLibraryVerdicts: a library is used if it is right and faster, and else the set beside it is,
// with a word.
func TestLibraryVerdicts(t *testing.T) {
	calls := atomic.Int32{}
	right := fortran(nil)
	for _, c := range []struct {
		name    string
		contest contest
		want    string
	}{
		{"right and faster", fakeContest(right, nil, 2), LibraryUsed},
		{"right and slower", fakeContest(right, nil, 1.01), LibrarySlow},
		{"one wrong number", fakeContest(fortran(func(c []float32) { c[len(c)/2] += 0.01 }), nil, 2), LibraryWrong},
		{"no number", fakeContest(fortran(func(c []float32) { clear(c) }), nil, 2), LibraryWrong},
		{"other bits at the second call", fakeContest(fortran(func(c []float32) {
			if calls.Add(1)%2 == 0 {
				c[0] += 1e-7 * c[0]
			}
		}), nil, 2), LibraryWrong},
		{"writes between rows", fakeContest(fortran(func(c []float32) { unsafe.Slice(&c[0], len(c)+1)[len(c)] = 0 }), nil, 2), LibraryWrong},
		{"no symbol", fakeContest(0, errors.New("no sgemm_"), 2), LibraryMissing},
	} {
		lib, table := c.contest.verdict("fake", "fake.so")
		if lib.Verdict != c.want || (table != nil) != (c.want == LibraryUsed) || lib.Beside != sets[0].name {
			t.Errorf("%s: %+v, table %v, want %s", c.name, lib, table != nil, c.want)
		}
	}
	if lib, table := fakeContest(right, nil, 2).verdict("fake", "off"); lib.Verdict != LibraryOff || table != nil {
		t.Errorf("off: %+v", lib)
	}
}

// TestLibraryRace: the race itself finds a library slow that sleeps thirty times as long as the
// products take.
func TestLibraryRace(t *testing.T) {
	if testing.Short() {
		t.Skip("emulated products take longer than the sleep")
	}
	asleep := purego.NewCallback(func(_, _ *byte, _, _, _ *int32, _, _ *float32, _ *int32, _ *float32, _ *int32, _, _ *float32, _ *int32) uintptr {
		time.Sleep(2 * time.Millisecond)
		return 0
	})
	j := fakeContest(fortran(nil), nil, 0)
	j.race = func(own, _ *primitives) float64 {
		slow := blasTable("fake", own, asleep)
		return raceProducts(own, &slow)
	}
	if lib, table := j.verdict("fake", "fake.so"); lib.Verdict != LibrarySlow || table != nil || !(lib.Speed > 0) {
		t.Errorf("%+v", lib)
	}
}

// TestLibraryProducts: every product by a library is right, whatever its sizes and strides, beside
// guard pages too, and takes nothing from the heap.
func TestLibraryProducts(t *testing.T) {
	p := blasTable("fake", sets[0], fortran(nil))
	rng := rand.New(rand.NewPCG(1, 2))
	for _, z := range [][3]int{{1, 200, 200}, {2, 128, 130}, {33, 65, 40}, {64, 64, 64}, {40, 130, 33}, {176, 7, 90}, {3, 3, 3}} {
		for bits := range 32 {
			q := product{m: z[0], n: z[1], k: z[2], transposed: bits&1 != 0, packed: bits&2 != 0, bias: bits&4 != 0, residual: bits&8 != 0, inPlace: bits&16 != 0, padC: bits % 3, padA: bits % 2}
			checkProduct(t, p.gemm, q, q.build(rng, func(n int) []float32 { return guarded(t, n, bits&1 == 0) }))
		}
	}
	g := gemmCall("forward", 64, 64, 64)
	if got := testing.AllocsPerRun(20, func() { blasStart(g) }); got != 0 {
		t.Errorf("%v allocations before a call", got)
	}
}

// TestLibraryKeepsItsVerdict: the verdict of a machine is taken from its file, made again where
// that is of another library or asked for, and a broken file is none.
func TestLibraryKeepsItsVerdict(t *testing.T) {
	j := fakeContest(fortran(nil), nil, 2)
	j.store = filepath.Join(t.TempDir(), "haul", "library.json")
	j.verdict("fake", "fake.so")
	j.race = func(own, theirs *primitives) float64 { return 0.5 }
	if lib, table := j.verdict("fake", "fake.so"); lib.Verdict != LibraryUsed || lib.Speed != 2 || table == nil {
		t.Errorf("kept: %+v", lib)
	}
	if lib, _ := j.verdict("fake", "other.so"); lib.Verdict != LibrarySlow {
		t.Errorf("another library: %+v", lib)
	}
	j.anew, j.race = true, func(own, theirs *primitives) float64 { return 3 }
	if lib, _ := j.verdict("fake", "other.so"); lib.Speed != 3 {
		t.Errorf("anew: %+v", lib)
	}
	if err := os.WriteFile(j.store, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	j.anew, j.race = false, func(own, theirs *primitives) float64 { return 4 }
	if lib, _ := j.verdict("fake", "other.so"); lib.Speed != 4 {
		t.Errorf("a broken file: %+v", lib)
	}
}

// TestOpenFortran: what is not there, and what has no sgemm_, is named.
func TestOpenFortran(t *testing.T) {
	for _, path := range []string{"/nowhere/libblas.so", "libc.so.6"} {
		if _, err := openFortran(path); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

// TestWantedLibrary: the environment names a library, or turns it off.
func TestWantedLibrary(t *testing.T) {
	t.Setenv(LibraryVariable, "off")
	if _, path := wantedLibrary(); path != "off" {
		t.Errorf("off is %q", path)
	}
	t.Setenv(LibraryVariable, "/a/libblas.so")
	if name, path := wantedLibrary(); name != "blas" || path != "/a/libblas.so" {
		t.Errorf("%q at %q", name, path)
	}
	t.Setenv(LibraryVariable, "")
	system, at := systemLibrary()
	if name, path := wantedLibrary(); name != system || path != at {
		t.Errorf("%q at %q", name, path)
	}
}

// The library is asked for products of two rows and more that are worth a call.
func TestWhatALibraryTakes(t *testing.T) {
	const k = 128
	for _, c := range []struct {
		m, n int
		want bool
	}{{1, blasLeast, false}, {2, blasLeast/(2*k) - 1, false}, {2, blasLeast / (2 * k), true}} {
		if got := blasTakes(&gemmArgs{m: c.m, n: c.n, k: k, ars: k, aks: 1, ldc: c.n}); got != c.want {
			t.Errorf("%d rows, %d columns: %v", c.m, c.n, got)
		}
	}
}
