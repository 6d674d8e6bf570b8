package cuda

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"haul/internal/kernel/cuda/bind"
)

// declaration is a kernel as its PTX declares it.
type declaration struct {
	kinds   []string // of parameters: "u64" for addresses, "u32", "f32", "f64"
	threads int      // most a block may have; 0: not said
}

var (
	paramPattern = regexp.MustCompile(`\.param \.(\w+) `)
	boundPattern = regexp.MustCompile(`\.maxntid (\d+)`)
)

// declarationAt reads the declaration whose parameters begin at a place in a module's text.
func declarationAt(ptx []byte, body int) (d declaration) {
	head, _, _ := bytes.Cut(ptx[body:], []byte("{"))
	for _, m := range paramPattern.FindAllSubmatch(head, -1) {
		d.kinds = append(d.kinds, string(m[1]))
	}
	if m := boundPattern.FindSubmatch(head); m != nil {
		d.threads, _ = strconv.Atoi(string(m[1]))
	}
	return d
}

// kindOf is how PTX declares a parameter for an argument.
func kindOf(arg any) string {
	switch arg.(type) {
	case uint64, int64:
		return "u64"
	case uint32, int32:
		return "u32"
	case float32:
		return "f32"
	case float64:
		return "f64"
	}
	return fmt.Sprintf("%T", arg)
}

// refuses says how a launch differs from what its kernel declares, with the kernel's name; "" where
// it does not.
func (d declaration) refuses(l bind.Launch) string {
	if len(l.Args) != len(d.kinds) {
		return fmt.Sprintf("%s takes %d arguments and is given %d", l.Key(), len(d.kinds), len(l.Args))
	}
	for i, a := range l.Args {
		if k := kindOf(a); k != d.kinds[i] {
			return fmt.Sprintf("%s declares parameter %d as %s and is given %s", l.Key(), i+1, d.kinds[i], k)
		}
	}
	threads := l.Block[0] * l.Block[1] * l.Block[2]
	if threads < 1 || threads > 1024 || d.threads > 0 && threads > d.threads {
		return fmt.Sprintf("%s allows %d threads in a block and is given %d", l.Key(), d.threads, threads)
	}
	if g := l.Grid; g[0] < 1 || g[0] >= 1<<31 || g[1] < 1 || g[1] > 65535 || g[2] < 1 || g[2] > 65535 {
		return fmt.Sprintf("%s is given the grid %v", l.Key(), g)
	}
	return ""
}
