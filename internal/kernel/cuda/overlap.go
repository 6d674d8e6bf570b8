package cuda

import (
	"bytes"
	"fmt"
	"regexp"
)

// What a reader could break: where kernels overlap, one is launched while those it depends on still
// run, so nothing in it may touch memory before its first instruction has waited for their end;
// where a kernel says othersEnded, nothing but weights before that. It lets its own followers be
// launched only after that wait: whoever runs has all that was written before it, however far back,
// and no more than one generation of blocks sits on the multiprocessors waiting.

// The oldest compute capability whose kernels may overlap, and the PTX that has the instructions.
const overlapMajor = 9

var (
	versionLine = regexp.MustCompile(`(?m)^\.version .*\n\.target (\w+)$`)
	firstBlock  = []byte("// %bb.0:")
	othersEnded = []byte("// haul: others ended") // others_ended() of src/common/rows16.cuh
	overlapping = []byte("\n\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;")
)

// entryAt is where a kernel's line begins in a module's text, and where its parameters do.
type entryAt struct {
	name       string
	line, body int
}

// entriesOf finds the kernels of a module: texts are megabytes, and every start reads some.
func entriesOf(ptx []byte) (all []entryAt) {
	word := []byte(" .entry ")
	for at := 0; ; {
		i := bytes.Index(ptx[at:], word)
		if i < 0 {
			return all
		}
		i += at
		at = i + len(word)
		line := bytes.LastIndexByte(ptx[:i], '\n') + 1
		n := bytes.IndexByte(ptx[at:], '(')
		if how := string(ptx[line:i]); n > 0 && (how == ".visible" || how == ".weak") {
			all = append(all, entryAt{string(ptx[at : at+n]), line, at + n + 1})
		}
	}
}

// overlapped is a module whose kernels wait for those before them by themselves, and let those
// after them be launched as soon as they run.
func overlapped(ptx []byte) ([]byte, error) {
	version := versionLine.FindSubmatchIndex(ptx)
	if version == nil {
		return nil, fmt.Errorf("no version and target in the PTX")
	}
	out, at := append([]byte(nil), ptx[:version[1]]...), version[1]
	if !bytes.HasPrefix(ptx[version[2]:], []byte("sm_9")) { // else it has the instructions as it is
		out = append(append([]byte(nil), ptx[:version[0]]...), ".version 7.8\n.target sm_90"...)
	}
	for _, e := range entriesOf(ptx) {
		first := bytes.Index(ptx[e.body:], firstBlock)
		next := bytes.Index(ptx[e.body:], []byte(".entry"))
		if first < 0 || next >= 0 && next < first {
			return nil, fmt.Errorf("kernel %s has no first block", e.name)
		}
		here := e.body + first + len(firstBlock)
		end := len(ptx)
		if next >= 0 {
			end = e.body + next
		}
		if later := bytes.Index(ptx[here:end], othersEnded); later >= 0 {
			here += later + len(othersEnded)
		}
		out = append(append(out, ptx[at:here]...), overlapping...)
		at = here
	}
	return append(out, ptx[at:]...), nil
}
