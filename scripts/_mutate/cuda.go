package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Faults in CUDA sources. A change is planted in a copy of the tree, the modules that include its
// file are made anew with clang, and the suites of the interpreted GPU judge it. Of the modules
// that include a header a few are made, in an order that the seed draws, until the code of some has
// changed. A change may survive because others were not made; a test never fails for that reason.

const (
	fewModules  = 3  // made at a time
	mostModules = 12 // made for a change
)

// suiteTimeout bounds a suite of the interpreted GPU.
const suiteTimeout = 20 * time.Minute

// cudaSources lists the CUDA sources below the packages' folders, generated ones not among them.
func cudaSources(packages []*listPackage) (out []string, err error) {
	for _, p := range packages {
		err := filepath.WalkDir(p.relative, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (filepath.Ext(path) == ".cu" || filepath.Ext(path) == ".cuh") {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// cudaOperators are binary operators and what they are taken for. They have a space on both sides,
// which tells them from pointers, references and templates.
var cudaOperators = map[string][]string{"+": {"-"}, "-": {"+"}, "*": {"/"}, "/": {"*"}, "%": {"/"}, "<": {"<=", ">="}, "<=": {"<", ">"}, ">": {">=", "<="}, ">=": {">", "<"},
	"==": {"!="}, "!=": {"=="}, "&&": {"||"}, "||": {"&&"}, "<<": {">>"}, ">>": {"<<"}, "&": {"|"}, "|": {"&"}, "^": {"&"}, "+=": {"-=", "="}, "-=": {"+="}, "*=": {"/="}}

var (
	cudaOperator  = regexp.MustCompile(` (\+=|-=|\*=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&|^]) `)
	cudaNumber    = regexp.MustCompile(`\b(0x[0-9a-fA-F]+|[0-9]+)(u|ull)?\b|\b[0-9]+\.[0-9]*(e-?[0-9]+)?f?`)
	cudaBound     = regexp.MustCompile(`for \([^;{}]*;[^;<]* <=? ([^;&|]+);`)
	cudaCondition = regexp.MustCompile(`\bif \(`)
	cudaStatement = regexp.MustCompile(`(?m)(?:^|[;{] |\) )[ \t]*((?:[a-zA-Z_][\w.\[\]]*(?:<[\w, ]+>)?\([^;{}]*\)|[a-zA-Z_*(][\w.\[\] *()+\->]* (?:[-+|&^*]|<<|>>)?= [^;{}]+);)`)
	declarations  = regexp.MustCompile(`^(const|constexpr|static|int|float|double|bool|long|char|u?int\w*|u[0-9]+|f[24]|float[24]_|auto|return|for|if|while|else|using|typedef|struct|template|[A-Z]\w* \w+ =)\b`)
	cudaCall      = regexp.MustCompile(`\b([a-z_]\w*)\(([^()]+), ([^()]+?)\)`)
	barriers      = regexp.MustCompile(`^(sync\w*|seal|barrier_\w+|wait_\w+|await\w*|begin_products|end_products|products_\w+|\w*commit\w*|\w*fence\w*)[(<]`)
)

// cudaCandidates lists what can be changed in a CUDA source. Comments, strings and the
// preprocessor's lines stay, but for the bodies of macros.
func cudaCandidates(root, path string) ([]*change, error) {
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	text := blank(string(raw))
	var out []*change
	add := func(kind string, from, to int, with string) {
		out = append(out, &change{Package: cudaPackage(path), File: path, Kind: kind, from: from, to: to, text: with})
	}
	for at := 0; at < len(text); {
		m := cudaOperator.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		from, to := at+m[2], at+m[3]
		for _, other := range cudaOperators[text[from:to]] {
			add("operator", from, to, other)
		}
		at = to // its second space may be the next one's first
	}
	for _, m := range cudaNumber.FindAllStringSubmatchIndex(text, -1) {
		if m[2] < 0 {
			add("constant", m[0], m[1], "(2 * "+text[m[0]:m[1]]+")")
			continue
		}
		if v, err := strconv.ParseUint(text[m[2]:m[3]], 0, 64); err == nil {
			add("constant", m[2], m[3], strconv.FormatUint(v+1, 10))
			if v > 0 {
				add("constant", m[2], m[3], strconv.FormatUint(v-1, 10))
			}
		}
	}
	for _, m := range cudaBound.FindAllStringSubmatchIndex(text, -1) {
		add("bound", m[2], m[3], "("+string(raw[m[2]:m[3]])+") - 1")
	}
	for _, m := range cudaCondition.FindAllStringIndex(text, -1) {
		if end := closing(text, m[1]-1); end > 0 {
			add("condition", m[1], end, "!("+string(raw[m[1]:end])+")")
			add("condition", m[1], end, "("+string(raw[m[1]:end])+") && false")
		}
	}
	for _, m := range cudaStatement.FindAllStringSubmatchIndex(text, -1) {
		if declarations.MatchString(text[m[2]:m[3]]) {
			continue
		}
		kind := "statement"
		if barriers.MatchString(text[m[2]:m[3]]) {
			kind = "barrier"
		}
		add(kind, m[2], m[3], ";")
	}
	for _, m := range cudaCall.FindAllStringSubmatchIndex(text, -1) {
		if name := text[m[2]:m[3]]; name == "larger" || name == "min" || name == "max" || name == "if" || name == "for" || name == "while" || strings.Contains(text[m[6]:m[7]], ",") {
			continue // in any order the same, or no call
		}
		last := text[m[4]:m[5]]
		if i := strings.LastIndex(last, ", "); i >= 0 {
			m[4] += i + 2
		}
		if a, b := string(raw[m[4]:m[5]]), string(raw[m[6]:m[7]]); a != b && !strings.ContainsAny(a+b, ";{}") {
			add("arguments", m[4], m[7], b+", "+a)
		}
	}
	number(out, string(raw))
	return out, nil
}

// kernelPackage is the package whose tests run the kernels of every family below it.
const kernelPackage = "internal/kernel/cuda"

// cudaPackage is the package whose tests run a source: the nearest folder above src, or
// kernelPackage for the sources of its families.
func cudaPackage(path string) string {
	if strings.HasPrefix(filepath.ToSlash(path), kernelPackage+"/") {
		return kernelPackage
	}
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "src" {
			return filepath.Dir(dir)
		}
	}
	return filepath.Dir(path)
}

// closing is the place of the parenthesis that ends the one at `from`; -1 where there is none.
func closing(text string, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// blank replaces comments, strings and directives by blanks, so that every byte keeps its place.
func blank(text string) string {
	out := []byte(text)
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = '_'
			}
		}
	}
	for i := 0; i < len(out); i++ {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "//"):
			end := i + strings.IndexByte(rest+"\n", '\n')
			hide(i, end)
			i = end - 1
		case strings.HasPrefix(rest, "/*"):
			end := i + strings.Index(rest+"*/", "*/")
			hide(i, min(end+2, len(out)))
			i = end
		case out[i] == '"':
			end := i + 1
			for end < len(out) && out[end] != '"' {
				if out[end] == '\\' {
					end++
				}
				end++
			}
			hide(i, min(end+1, len(out)))
			i = end
		case out[i] == '#' && strings.TrimSpace(text[strings.LastIndexByte(text[:i], '\n')+1:i]) == "":
			end := i + strings.IndexByte(rest+"\n", '\n')
			if strings.HasPrefix(rest, "#define") { // its body is code
				end = i + len("#define")
				for end < len(out) && out[end] == ' ' {
					end++
				}
				for end < len(out) && (isLetter(out[end]) || out[end] == '(' || out[end] == ',' || out[end] == ')' || out[end] == ' ' && out[end-1] == ',') {
					end++
				}
			}
			hide(i, end)
			i = end - 1
		}
	}
	return string(out)
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// suite is what judges the kernels of a family, on an interpreted GPU.
type suite struct{ gpu, run string }

// suites are those of a family of kernels, by their sources' folder, the quickest first.
var suites = map[string][]suite{
	"attention": {{"sm_80", "^TestRounded$/^(tf32|bf16)$/^(attention|causal|causality|agent|cached|spread)$"}, {"sm_80", "^TestDevice$/^(attention|graph_attention|causal|cached|step)$"},
		{"sm_90a", "^TestInterpretedSizes$/^(fp32|tf32)$/^attention$"}, {"sm_90a", "^(TestInterpretedAgents|TestTenthAgents)$"}, {"sm_80", "^TestInterpretedNear$"}},
	"routing": {{"sm_90a", "^TestInterpretedSizes$"}, {"sm_80", "^TestDevice$/^(rollout|rollout.grad|generate|capacities|step)$"}, {"sm_80", "^TestInterpretedNear$"}},
	"dense":   {{"sm_80", "^TestDevice$/^(linear|gelu|norm|dropout|glu|mean|step)$"}, {"sm_80", "^TestRounded$/^(tf32|bf16)$/^(linear|gelu|norm|dropout|agent)$"}, {"sm_80", "^TestInterpretedNear$"}},
	"sequence": {{"sm_80", "^TestRounded$/^bf16$/^(embed|rotate|spread|crossentropy|regions|ppo|gru|agent)$"}, {"sm_80", "^TestDevice$/^(embed|rotate|spread|crossentropy|regions|ppo|gru)$"},
		{"sm_90a", "^TestInterpretedAgents$"}},
	"once": {{"sm_80", "^TestDevice$/^(adamw|muon|tally|tally_heads|exchange|parts)$"}, {"sm_80", "^TestRounded$/^bf16$/^(adamw|muon|parts)$"}},
}

// hopperSuites are those of sources that become modules for sm_90a.
var hopperSuites = []suite{{"sm_90a", "^TestRowsProducts$"}, {"sm_90a", "^TestInterpretedAgents$"}, {"sm_90a", "^TestInterpretedRounded$/^bf16$/^(embed|linear|agent)$"}, {"sm_90a", "^TestTenthAgents$"}}

// suitesOf are the suites of a source's family, or all where no family has it.
func suitesOf(root, path string) (out []suite) {
	if text, err := os.ReadFile(filepath.Join(root, path)); err == nil && (bytes.Contains(text, []byte("wgmma")) || bytes.Contains(text, []byte("hopper.cuh")) || strings.HasPrefix(filepath.Base(path), "layer")) {
		return hopperSuites
	}
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if s, ok := suites[part]; ok {
			return s
		}
	}
	for _, family := range []string{"dense", "sequence", "attention", "once", "routing"} {
		for _, s := range suites[family] {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// cudaModules maps the CUDA sources of a tree to the modules that include them, by the first lines
// of the packed modules, which name source and defines.
type cudaModules map[string][]string

func readCUDAModules(ctx context.Context, root string, pkg string) (cudaModules, error) {
	var packed []string
	for _, folder := range []string{"ptx", "*/ptx"} { // its own, and those of families
		more, err := filepath.Glob(filepath.Join(root, pkg, folder, "*.ptx.zst"))
		if err != nil {
			return nil, err
		}
		packed = append(packed, more...)
	}
	out := cudaModules{}
	for _, path := range packed {
		text, err := exec.CommandContext(ctx, "zstd", "-q", "-dc", path).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		source, _, _ := strings.Cut(strings.TrimPrefix(string(first), "// Code generated by scripts/ptx from "), " ")
		module := strings.TrimSuffix(filepath.Base(path), ".ptx.zst")
		seen := map[string]bool{}
		included(root, pkg, filepath.Join(pkg, strings.TrimSuffix(source, ";")), seen)
		for file := range seen {
			out[file] = append(out[file], module)
		}
	}
	return out, nil
}

// included adds a file and what it includes from beside it or from src/common.
func included(root, pkg, path string, seen map[string]bool) {
	if seen[path] {
		return
	}
	file, err := os.Open(filepath.Join(root, path))
	if err != nil {
		return // a header elsewhere
	}
	defer file.Close()
	seen[path] = true
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "#include \""); ok {
			name = strings.TrimSuffix(name, "\"")
			included(root, pkg, filepath.Join(filepath.Dir(path), name), seen)
			included(root, pkg, filepath.Join(pkg, "src", "common", name), seen)
		}
	}
}

// some are at most n of the modules, in an order that the seed draws.
func some(modules []string, n int, seed uint64) []string {
	if len(modules) <= n {
		return modules
	}
	place := func(m string) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d\n%s", seed, m)
		return h.Sum64() * 0x9e3779b97f4a7c15 >> 16
	}
	modules = slices.Clone(modules)
	slices.SortFunc(modules, func(a, b string) int {
		if place(a) < place(b) {
			return -1
		}
		return 1
	})
	return modules[:n]
}

// askCUDA makes the modules of a changed source anew and runs their suites with them. The copy has
// the modules that it had afterwards.
func (j *judge) askCUDA(ctx context.Context, dir, path string, seed uint64) (v verdict, err error) {
	pkg := cudaPackage(path)
	binary, modules, err := j.cudaTests(ctx, dir, pkg)
	if err != nil {
		return v, err
	}
	own := some(modules[path], mostModules, seed)
	if len(own) == 0 {
		return v, fmt.Errorf("no module includes %s", path)
	}
	changed, err := os.MkdirTemp("", "haul-mutate-ptx-")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(changed)
	found := false
	for few := range slices.Chunk(own, fewModules) {
		if found, v.broken, err = remake(ctx, dir, pkg, changed, few); found || err != nil || v.broken != "" {
			break
		}
	}
	if err != nil || v.broken != "" {
		return v, err
	}
	if !found {
		v.broken = "no code of the modules that were made changes"
		return v, nil
	}
	for _, s := range suitesOf(dir, path) {
		out, err := runSuite(ctx, binary, filepath.Join(dir, pkg), s, changed)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return v, ctx.Err()
		}
		v.killed, v.judged, v.by = true, true, cmp.Or(firstFailure(out), "its exit code")
		top, _, _ := strings.Cut(v.by, "/")
		if strings.HasPrefix(top, "Test") {
			s.run = "^" + strings.ReplaceAll(v.by, "/", "$/^") + "$"
		}
		return v, j.once(s.gpu+" "+s.run, func() error {
			if out, err := runSuite(ctx, binary, filepath.Join(dir, pkg), s, ""); err != nil {
				return fmt.Errorf("%s is red without any fault: %w\n%s", s.run, err, tail(out))
			}
			return nil
		})
	}
	return v, nil
}

// packedModule returns the file of a module of a package or of one of its families.
func packedModule(pkg, module string) (string, error) {
	for _, folder := range []string{"ptx", "*/ptx"} {
		found, err := filepath.Glob(filepath.Join(pkg, folder, module+".ptx.zst"))
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("%s: no module %s, or several", pkg, module)
}

// remake makes modules of a copy, moves those whose code has changed to a folder, and puts back the
// ones that the copy had.
func remake(ctx context.Context, dir, pkg, changed string, modules []string) (found bool, broken string, err error) {
	kept := map[string][]byte{}
	for _, m := range modules {
		at, err := packedModule(filepath.Join(dir, pkg), m)
		if err != nil {
			return false, "", err
		}
		if kept[at], err = os.ReadFile(at); err != nil {
			return false, "", err
		}
	}
	build := exec.CommandContext(ctx, "scripts/ptx", modules...)
	build.Dir = dir
	out, failed := build.CombinedOutput()
	for at, packed := range kept {
		made, err := os.ReadFile(at)
		if err == nil && !bytes.Equal(code(ctx, made), code(ctx, packed)) {
			found = true
			err = os.WriteFile(filepath.Join(changed, filepath.Base(at)), made, 0o644)
		}
		if err = errors.Join(err, os.WriteFile(at, packed, 0o644)); err != nil {
			return false, "", err
		}
	}
	if failed != nil {
		return false, compilerSays(string(out)), ctx.Err()
	}
	return found, "", nil
}

// code is the text of a packed module behind its three lines of origin.
func code(ctx context.Context, packed []byte) []byte {
	inflate := exec.CommandContext(ctx, "zstd", "-q", "-dc")
	inflate.Stdin = bytes.NewReader(packed)
	text, err := inflate.Output()
	lines := bytes.SplitN(text, []byte("\n"), 4)
	if err != nil || len(lines) < 4 {
		return packed
	}
	return lines[3]
}

// once remembers what f said of a key.
func (j *judge) once(key string, f func() error) error {
	j.mu.Lock()
	err, known := j.clean[key]
	j.mu.Unlock()
	if !known {
		err = f()
		j.mu.Lock()
		j.clean[key] = err
		j.mu.Unlock()
	}
	return err
}

// cudaTests are the tests of a package as a program, and its sources with their modules. Both are
// made once, without a fault in a Go file.
func (j *judge) cudaTests(ctx context.Context, dir, pkg string) (binary string, modules cudaModules, err error) {
	j.cuda.Lock()
	defer j.cuda.Unlock()
	if j.modules == nil {
		j.binary = filepath.Join(dir, "cuda.test")
		build := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", j.binary, "./"+pkg)
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("%s: %w: %s", pkg, err, compilerSays(string(out)))
		}
		if j.modules, err = readCUDAModules(ctx, dir, pkg); err != nil {
			return "", nil, err
		}
	}
	return j.binary, j.modules, nil
}

// runSuite runs tests with the modules of a folder.
func runSuite(ctx context.Context, binary, dir string, s suite, changed string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.short", "-test.failfast", "-test.timeout", suiteTimeout.String(), "-test.run", s.run)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HAUL_CARD="+s.gpu)
	if changed != "" {
		cmd.Env = append(cmd.Env, "HAUL_PTX="+changed)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
