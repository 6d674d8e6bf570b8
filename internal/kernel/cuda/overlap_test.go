package cuda

import (
	"bytes"
	"regexp"
	"testing"
)

// TestEveryKernelWaitsFirst: where kernels overlap, the first instructions of each are the wait for
// those before it and the leave for those after it; where a kernel reads weights before, it writes
// nothing and touches no shared memory until then.
func TestEveryKernelWaitsFirst(t *testing.T) {
	// An entry, its declarations, and its first instructions.
	opening := regexp.MustCompile(`(?s)\.entry (\w+)\([^)]*\)[^{]*\{\s*` + // name, parameters
		`((?:\s*\.(?:reg|local|shared)[^\n]*\n|\s*//[^\n]*\n)*)` + `([^\n]*)\n([^\n]*)\n`) // declarations and comments, two instructions
	writes := regexp.MustCompile(`\t(@%\w+ )?(st|atom|red|cp|bar|mbarrier|ld\.shared)\.`)
	for _, name := range Modules() {
		text, err := image(name)
		if err != nil {
			t.Fatal(err)
		}
		out, err := overlapped(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kernels, found := bytes.Count(text, []byte(".entry ")), opening.FindAllSubmatch(out, -1)
		if kernels == 0 || len(found) != kernels {
			t.Errorf("%s: %d of %d kernels were understood", name, len(found), kernels)
		}
		for _, m := range found {
			first, second := bytes.TrimSpace(m[3]), bytes.TrimSpace(m[4])
			if body := bytes.Split(out[bytes.Index(out, m[0]):], []byte(".entry "))[1]; bytes.Contains(body, othersEnded) {
				early := body[:bytes.Index(body, []byte("griddepcontrol.wait"))]
				if !bytes.Contains(early, othersEnded) || writes.Match(early) {
					t.Errorf("%s.%s does more before it waits than read weights", name, m[1])
				}
				continue
			}
			if string(first) != "griddepcontrol.wait;" || string(second) != "griddepcontrol.launch_dependents;" {
				t.Errorf("%s.%s begins with %q, %q", name, m[1], first, second)
			}
		}
		waits := bytes.Count(out, []byte("griddepcontrol.wait"))
		if !bytes.Contains(out, []byte(".target sm_90")) || bytes.Contains(out, []byte(".target sm_80\n")) || waits != kernels {
			t.Errorf("%s: target or waits are not what they should be", name)
		}
	}
	for _, bad := range []string{"", ".version 7.5\n.target sm_80\n.visible .entry k(\n)\n{\n\tret;\n}\n"} {
		if _, err := overlapped([]byte(bad)); err == nil {
			t.Errorf("%q passes as a module", bad)
		}
	}
}
