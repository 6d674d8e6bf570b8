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
	entryLine   = regexp.MustCompile(`(?m)^\.(?:visible|weak) \.entry (\w+)\(`)
	firstBlock  = []byte("// %bb.0:")
	othersEnded = []byte("// haul: others ended") // others_ended() of src/common/rows16.cuh
	overlapping = []byte("\n\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;")
)

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
	for _, e := range entryLine.FindAllSubmatchIndex(ptx, -1) {
		first := bytes.Index(ptx[e[1]:], firstBlock)
		next := bytes.Index(ptx[e[1]:], []byte(".entry"))
		if first < 0 || next >= 0 && next < first {
			return nil, fmt.Errorf("kernel %s has no first block", ptx[e[2]:e[3]])
		}
		here := e[1] + first + len(firstBlock)
		end := len(ptx)
		if next >= 0 {
			end = e[1] + next
		}
		if later := bytes.Index(ptx[here:end], othersEnded); later >= 0 {
			here += later + len(othersEnded)
		}
		out = append(append(out, ptx[at:here]...), overlapping...)
		at = here
	}
	return append(out, ptx[at:]...), nil
}
