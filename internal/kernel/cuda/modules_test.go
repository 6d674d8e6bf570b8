package cuda_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"haul/internal/cu/cutest"
	"haul/internal/kernel/cuda"
	"haul/internal/ptx"
)

// modulesVariable names a file in the environment. A test process appends a line "module kernel" to
// it for each interpreted kernel that it has launched.
const modulesVariable = "HAUL_MODULES"

// neverRun maps modules that no test runs on the interpreted GPU to the reason.
var neverRun = map[string]string{
	"peak": "measures a GPU's rates: nothing reads what its loops compute",
}

// keepModules appends the kernels that this process has launched to the file.
func keepModules(path string) error {
	sources, err := sourceLines()
	if err != nil {
		return err
	}
	var out strings.Builder
	for line, kernels := range cutest.Launched() {
		for _, k := range kernels {
			fmt.Fprintln(&out, sources[line], k)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(out.String())
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// sourceLines returns the modules by the first line of their texts, which names source and defines.
func sourceLines() (map[string]string, error) {
	out := map[string]string{}
	for _, module := range cuda.Modules() {
		text, err := cuda.Image(module)
		if err != nil {
			return nil, err
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		if other, ok := out[string(first)]; ok {
			return nil, fmt.Errorf("modules %s and %s have the same first line", module, other)
		}
		out[string(first)] = module
	}
	return out, nil
}

// TestEveryModuleRan: of the modules that ship all have had a kernel run on the interpreted GPU,
// except for neverRun. .ci/run card makes the list.
func TestEveryModuleRan(t *testing.T) {
	path := os.Getenv(modulesVariable)
	if path == "" {
		t.Skip("judges the list that " + modulesVariable + " names, after the tests that make it: .ci/run card")
	}
	list, err := os.ReadFile(path)
	must(t, err)
	ran, kernels := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(list)) {
		module, _, _ := strings.Cut(line, " ")
		ran[module], kernels[strings.TrimSpace(line)] = true, true
	}
	modules := cuda.Modules()
	all, hopper, idle := 0, 0, []string(nil)
	for _, module := range modules {
		text, err := cuda.Image(module)
		must(t, err)
		m, err := ptx.Parse(text)
		must(t, err)
		if m.Only() && ran[module] {
			hopper++
		}
		all += len(m.Kernels())
		for _, k := range m.Kernels() {
			if !kernels[module+" "+k] {
				idle = append(idle, module+"."+k)
			}
		}
		switch reason, excepted := neverRun[module]; {
		case !ran[module] && !excepted:
			t.Errorf("module %s did not run on the interpreted GPU", module)
		case ran[module] && excepted:
			t.Errorf("module %s ran: it is no exception (%s)", module, reason)
		}
	}
	names := make([]string, 0, len(ran))
	for _, module := range modules {
		if ran[module] {
			names = append(names, module)
		}
	}
	for module := range neverRun {
		if !slices.Contains(modules, module) {
			t.Errorf("exception %s is no module", module)
		}
	}
	fmt.Printf("%d of %d modules ran on the interpreted GPU, %d of them for sm_90a alone: %s\n", len(names), len(modules), hopper, strings.Join(names, " "))
	fmt.Printf("%d of %d kernels ran; those that did not: %s\n", all-len(idle), all, strings.Join(idle, " "))
}
