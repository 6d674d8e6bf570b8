package cpu

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// What a reader could break: nothing of a library is believed. Before its first use it must agree
// with sums in float64 on a training step's products, leave alone what lies between rows, give
// equal bits for equal numbers wherever they lie, and beat the set beside it on all workers at
// once. The verdict is kept, so that runs of one machine do not change their arithmetic with its
// load.

// LibraryVariable names the environment variable with a library's path, or "off".
const LibraryVariable = "HAUL_BLAS"

// The verdicts on a library, a word each.
const (
	LibraryUsed    = "used"
	LibraryWrong   = "wrong"   // results are off, or change from call to call
	LibrarySlow    = "slow"    // the set's own products are as fast
	LibraryMissing = "missing" // no such library, or it has no sgemm_
	LibraryOff     = "off"     // LibraryVariable says so
)

// Library is what became of the system's matrix library.
type Library struct {
	Name    string  `json:"name"` // as an instruction set is named
	Path    string  `json:"path,omitempty"`
	Verdict string  `json:"verdict"`
	Speed   float64 `json:"speed,omitempty"` // its rate over that of the set beside it; 0: not timed
	Beside  string  `json:"beside"`          // that set
	Reason  string  `json:"reason,omitempty"`
}

// libraryGain is how many times as fast a library must be.
const libraryGain = 1.05

// systemLibrary is the library of this system that is tried unasked; none where the path is empty.
func systemLibrary() (name, path string) {
	if runtime.GOOS == "darwin" {
		return "accelerate", "/System/Library/Frameworks/Accelerate.framework/Accelerate"
	}
	return "", ""
}

// wantedLibrary is the one to try: the system's, unless the environment says otherwise.
func wantedLibrary() (name, path string) {
	name, path = systemLibrary()
	if asked := os.Getenv(LibraryVariable); asked != "" {
		if name == "" || asked != path {
			name = "blas"
		}
		path = asked
	}
	return name, path
}

// known is this process's verdict, and the table where the library is used.
var known struct {
	once  sync.Once
	lib   *Library
	table *primitives
}

// libraryTable is the set with the library's products; nil where there is none to use.
func libraryTable() *primitives {
	known.once.Do(func() { known.lib, known.table = raceWanted(false) })
	return known.table
}

// RaceLibrary checks and times the library anew, whatever was found before, and keeps the verdict;
// nil where this system has none.
func RaceLibrary() *Library {
	lib, _ := raceWanted(true)
	return lib
}

func raceWanted(anew bool) (*Library, *primitives) {
	name, path := wantedLibrary()
	if path == "" {
		return nil, nil
	}
	j := contest{own: sets[0], open: openFortran, race: raceProducts, store: verdictFile(), anew: anew}
	return j.verdict(name, path)
}

// contest is what a verdict is made with.
type contest struct {
	own   *primitives
	open  func(path string) (sgemm uintptr, err error)
	race  func(own, theirs *primitives) (speed float64)
	store string // the file that keeps verdicts; "": none
	anew  bool   // look into no file
}

// verdict opens, checks and times a library.
func (j contest) verdict(name, path string) (*Library, *primitives) {
	lib := &Library{Name: name, Path: path, Beside: j.own.name}
	if path == "off" {
		lib.Path, lib.Verdict = "", LibraryOff
		return lib, nil
	}
	sgemm, err := j.open(path)
	if err != nil {
		lib.Verdict, lib.Reason = LibraryMissing, err.Error()
		return lib, nil
	}
	table := blasTable(name, j.own, sgemm)
	if kept := readVerdict(j.store, lib); kept != nil && !j.anew {
		lib = kept
	} else {
		switch {
		case !agrees(&table):
			lib.Verdict = LibraryWrong
		default:
			lib.Speed, lib.Verdict = j.race(j.own, &table), LibrarySlow
			if lib.Speed >= libraryGain {
				lib.Verdict = LibraryUsed
			}
		}
		writeVerdict(j.store, lib)
	}
	if lib.Verdict != LibraryUsed {
		return lib, nil
	}
	return lib, &table
}

// verdictFile keeps the verdicts of this machine and system.
func verdictFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "haul", "library.json")
}

// keptVerdict is a verdict with what it was made on.
type keptVerdict struct {
	Library
	System string `json:"system"`
	Cores  int    `json:"cores"`
}

func keepable(lib *Library) keptVerdict {
	return keptVerdict{*lib, systemVersion(), PerformanceCores()}
}

// readVerdict is the verdict on the same library of the same system, or nil. A file that cannot be
// read is none.
func readVerdict(file string, lib *Library) *Library {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var kept keptVerdict
	if json.Unmarshal(text, &kept) != nil {
		return nil
	}
	now := keepable(lib)
	if kept.Name != now.Name || kept.Path != now.Path || kept.Beside != now.Beside || kept.System != now.System || kept.Cores != now.Cores {
		return nil
	}
	switch kept.Verdict {
	case LibraryUsed, LibrarySlow, LibraryWrong:
		return &kept.Library
	}
	return nil
}

// writeVerdict keeps a verdict; where that fails the next process tries again.
func writeVerdict(file string, lib *Library) {
	if file == "" {
		return
	}
	text, err := json.Marshal(keepable(lib))
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o777) != nil {
		return
	}
	part, err := os.CreateTemp(filepath.Dir(file), "library-*")
	if err != nil {
		return
	}
	_, err = part.Write(text)
	if closed := part.Close(); err != nil || closed != nil || os.Rename(part.Name(), file) != nil {
		_ = os.Remove(part.Name())
	}
}

// agrees holds a table's products to sums in float64, on the kinds of a step: forward over packed
// weights, with a bias or a residual, and the gradient of weights, which adds to what is there.
func agrees(p *primitives) bool {
	for _, q := range []libraryProduct{
		{m: 176, n: 200, k: 128, packed: true, bias: true},
		{m: 176, n: 128, k: 256, packed: true, residual: true},
		{m: 128, n: 128, k: 176, turned: true, inPlace: true},
		{m: 130, n: 64, k: 33},
	} {
		first, ok := q.run(p, 0)
		second, same := q.run(p, 3)
		if !ok || !same {
			return false
		}
		for i := range first {
			if math.Float32bits(first[i]) != math.Float32bits(second[i]) {
				return false
			}
		}
	}
	return true
}

// libraryProduct is a product that a library is tried by.
type libraryProduct struct {
	m, n, k                 int
	packed, turned          bool // B in panels; A by columns
	bias, residual, inPlace bool
}

// run makes the product with operands that start so many floats into their memory, and tells
// whether C is right: a sum of k+2 terms in any order is off by at most (k+2)·2⁻²⁴ of the sum of
// their absolute values.
func (q libraryProduct) run(p *primitives, skew int) (c []float32, right bool) {
	const gap = 3 // floats between rows of C
	rng := rand.New(rand.NewPCG(37, 1))
	draw := func(n int) []float32 {
		s := make([]float32, n+skew)[skew:]
		for i := range s {
			s[i] = 2*rng.Float32() - 1
		}
		return s
	}
	g := gemmArgs{m: q.m, n: q.n, k: q.k, ldc: q.n + gap, ars: q.k, aks: 1, bks: q.n, bps: panel}
	if q.turned {
		g.ars, g.aks = 1, q.m
	}
	wide := q.n
	if q.packed {
		g.bks, g.bps, wide = panel, q.k*panel, (q.n+panel-1)/panel*panel
	}
	a, b, bias, r := draw(q.m*q.k), draw(wide*q.k), draw(q.n), draw(q.m*g.ldc)
	c = make([]float32, q.m*g.ldc+skew)[skew:]
	for i := range c {
		c[i] = float32(math.NaN()) // nothing of it may be read
	}
	g.a, g.b, g.c = ptr(a), ptr(b), ptr(c)
	if q.bias {
		g.bias = ptr(bias)
	}
	switch {
	case q.inPlace:
		copy(c, r)
		g.r, g.ldr = g.c, g.ldc
	case q.residual:
		g.r, g.ldr = ptr(r), g.ldc
	}
	before := append([]float32(nil), c...)
	p.gemm(&g)
	runtime.KeepAlive([]any{a, b, bias, r})
	bound := float64(q.k+2) * 0x1p-24
	out := make([]float32, 0, q.m*q.n)
	for i := range q.m {
		for j := range g.ldc {
			got := c[i*g.ldc+j]
			if j >= q.n {
				if math.Float32bits(got) != math.Float32bits(before[i*g.ldc+j]) {
					return nil, false
				}
				continue
			}
			var want, size float64
			add := func(v float64) { want += v; size += math.Abs(v) }
			for l := range q.k {
				add(float64(a[i*g.ars+l*g.aks]) * float64(b[j/panel*g.bps+l*g.bks+j%panel]))
			}
			if q.bias {
				add(float64(bias[j]))
			}
			if g.r != nil {
				add(float64(r[i*g.ldr+j]))
			}
			if !(math.Abs(float64(got)-want) <= bound*size) {
				return nil, false
			}
			out = append(out, got)
		}
	}
	return out, true
}

// raceProducts times products of tiny_1's step by both tables in turn, a shard on every worker at
// once: matrix units may be shared between cores.
func raceProducts(own, theirs *primitives) (speed float64) {
	const rounds = 15
	pool := newBenchPool(PerformanceCores())
	defer pool.close()
	products := make([][]*gemmArgs, len(pool.work))
	var flop float64 // of a worker's products
	for w := range products {
		flop = 0
		for _, kind := range []string{"forward", "dX", "dW"} {
			for _, layer := range [][2]int{{128, 384}, {256, 128}} {
				g := gemmCall(kind, TinyProducts.Shard, layer[0], layer[1])
				products[w], flop = append(products[w], g), flop+2*float64(g.m)*float64(g.n)*float64(g.k)
			}
		}
	}
	side := func(p *primitives) func(w, n int) float64 {
		return func(w, n int) float64 {
			for range n {
				for _, g := range products[w] {
					p.gemm(g)
				}
			}
			return float64(n) * flop
		}
	}
	first, second := side(own), side(theirs)
	mine, other := pool.fill(first), pool.fill(second)
	var ratios []float64
	for range rounds {
		rate := pool.rate(first, mine)
		ratios = append(ratios, pool.rate(second, other)/rate)
	}
	return median(ratios)
}
