package isa

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNEONWords: each word of neon_arm64.s is the instruction that stands beside it, by the
// assembler of binutils for arm64, which knows nothing of the generator. The file is read on every
// architecture, so that a change of the generator is checked where it is made.
func TestNEONWords(t *testing.T) {
	text, err := os.ReadFile("neon_arm64.s")
	if err != nil {
		t.Fatal(err)
	}
	spelled := map[string]string{}
	for _, m := range regexp.MustCompile(`WORD \$0x([0-9a-f]{8}) // (.+)`).FindAllStringSubmatch(string(text), -1) {
		if was, ok := spelled[m[2]]; ok && was != m[1] {
			t.Fatalf("%q is %s in one place and %s in another", m[2], was, m[1])
		}
		spelled[m[2]] = m[1]
	}
	if len(spelled) < 1000 {
		t.Fatalf("%d instructions were found: the file has changed its form", len(spelled))
	}
	assembler, err := exec.LookPath("aarch64-linux-gnu-as")
	if err != nil {
		t.Skip("no aarch64-linux-gnu-as here (Debian's binutils-aarch64-linux-gnu)")
	}
	var says []string
	for s := range spelled {
		says = append(says, s)
	}
	slices.Sort(says)
	folder := t.TempDir()
	source, object, flat := filepath.Join(folder, "a.s"), filepath.Join(folder, "a.o"), filepath.Join(folder, "a.bin")
	if err := os.WriteFile(source, []byte(".arch armv8.6-a\n"+strings.Join(says, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(assembler, "-o", object, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("aarch64-linux-gnu-objcopy", "-O", "binary", object, flat).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	code, err := os.ReadFile(flat)
	if err != nil || len(code) != 4*len(says) {
		t.Fatalf("%d bytes for %d instructions, %v", len(code), len(says), err)
	}
	const hex = "0123456789abcdef"
	for i, s := range says {
		var word strings.Builder
		for b := 3; b >= 0; b-- {
			word.WriteByte(hex[code[4*i+b]>>4])
			word.WriteByte(hex[code[4*i+b]&15])
		}
		if word.String() != spelled[s] {
			t.Errorf("%q is spelled %s, the assembler makes %s", s, spelled[s], word.String())
		}
	}
}
