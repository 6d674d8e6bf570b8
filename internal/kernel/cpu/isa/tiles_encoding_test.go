package isa

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// spelled is an instruction that the assembly spells as bytes, with the text that the generator put
// above it.
type spelled struct {
	says  string
	bytes []byte
	line  int
}

// spelledOut reads them from the generated assembly.
func spelledOut(t *testing.T) (out []spelled) {
	text, err := os.ReadFile("tiles_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	says := ""
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "// "); ok {
			says = comment
			continue
		}
		word, ok := strings.CutPrefix(line, "BYTE $")
		if !ok {
			says = ""
			continue
		}
		b, err := strconv.ParseUint(word, 0, 8)
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if says != "" {
			out = append(out, spelled{says: says, line: i + 1})
			says = ""
		}
		if len(out) == 0 {
			t.Fatalf("line %d: a byte of no instruction", i+1)
		}
		last := &out[len(out)-1]
		last.bytes = append(last.bytes, byte(b))
	}
	return out
}

var generalNames = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// decode is a disassembler of the few instructions, by Intel's tables (Software Developer's Manual,
// volume 2): it shares nothing with the encoder.
func decode(b []byte) string {
	if len(b) < 5 {
		return "too short"
	}
	bit := func(v byte, n int) int { return int(v >> n & 1) }
	switch b[0] {
	case 0xc4: // VEX: inverted R, X, B and the map; W, inverted vvvv, L and the prefix
		if b[1]&31 != 2 || b[2]>>7 != 0 || bit(b[2], 2) != 0 {
			return "not map 0F38, W0, 128 bits"
		}
		x, base, third, prefix, modrm := 1-bit(b[1], 6), 1-bit(b[1], 5), int(^b[2]>>3&15), b[2]&3, b[4]
		mod, reg, rm := modrm>>6, int(modrm>>3&7)+8*(1-bit(b[1], 7)), int(modrm&7)+8*base
		memory := func() string {
			if mod != 1 || modrm&7 != 4 || len(b) != 7 {
				return "?"
			}
			return fmt.Sprintf("[%s+%s*%d+%#x]", generalNames[int(b[5]&7)+8*base], generalNames[int(b[5]>>3&7)+8*x], 1<<(b[5]>>6), int8(b[6]))
		}
		switch {
		case b[3] == 0x49 && prefix == 0 && modrm == 0xc0 && len(b) == 5:
			return "tilerelease"
		case b[3] == 0x49 && prefix == 0 && mod == 0 && reg == 0 && modrm&7 != 4 && modrm&7 != 5 && len(b) == 5:
			return fmt.Sprintf("ldtilecfg [%s]", generalNames[rm])
		case b[3] == 0x49 && prefix == 3 && mod == 3 && rm == 0 && len(b) == 5:
			return fmt.Sprintf("tilezero tmm%d", reg)
		case b[3] == 0x4b && prefix == 3 && third == 0:
			return fmt.Sprintf("tileloadd tmm%d,%s", reg, memory())
		case b[3] == 0x4b && prefix == 2 && third == 0:
			return fmt.Sprintf("tilestored %s,tmm%d", memory(), reg)
		case b[3] == 0x5c && prefix == 2 && mod == 3 && len(b) == 5:
			return fmt.Sprintf("tdpbf16ps tmm%d,tmm%d,tmm%d", reg, rm, third)
		}
	// EVEX: inverted R, X, B, R' and the map; W, inverted vvvv, 1 and the prefix; z, L'L, b, inverted
	// V' and the mask
	case 0x62:
		if b[1]&15 != 2 || b[2]>>7 != 0 || bit(b[2], 2) != 1 || b[3]>>5&3 != 2 || b[3]>>7 != 0 || b[3]&7 != 0 {
			return "not map 0F38, W0, 512 bits, unmasked"
		}
		modrm, prefix := b[5], b[2]&3
		reg := int(modrm>>3&7) + 8*(1-bit(b[1], 7)) + 16*(1-bit(b[1], 4))
		second := int(^b[2]>>3&15) + 16*(1-bit(b[3], 3))
		switch {
		case b[4] == 0x72 && prefix == 3 && modrm>>6 == 3 && bit(b[3], 4) == 0 && len(b) == 6:
			return fmt.Sprintf("vcvtne2ps2bf16 zmm%d,zmm%d,zmm%d", reg, second, int(modrm&7)+8*(1-bit(b[1], 5))+16*(1-bit(b[1], 6)))
		case b[4] == 0x52 && prefix == 2 && modrm>>6 == 1 && modrm&7 != 4 && bit(b[3], 4) == 1 && len(b) == 7:
			return fmt.Sprintf("vdpbf16ps zmm%d,zmm%d,DWORD BCST [%s+%#x]", reg, second, generalNames[int(modrm&7)+8*(1-bit(b[1], 5))], 4*int(int8(b[6])))
		}
	}
	return "unknown"
}

// Every instruction that is spelled as bytes says what stands above it, to a decoder of its own.
func TestSpelledInstructions(t *testing.T) {
	all := spelledOut(t)
	kinds := map[string]int{}
	for _, s := range all {
		if got := decode(s.bytes); got != s.says {
			t.Errorf("tiles_amd64.s:%d: % x is %q, not %q", s.line, s.bytes, got, s.says)
		}
		kinds[strings.Fields(s.says)[0]]++
	}
	for _, kind := range []string{"ldtilecfg", "tilerelease", "tilezero", "tileloadd", "tilestored", "tdpbf16ps", "vcvtne2ps2bf16", "vdpbf16ps"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s in the assembly", kind)
		}
	}
}

// The same to the system's disassembler, where there is one that knows the instructions.
func TestSpelledInstructionsByObjdump(t *testing.T) {
	tool, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("no objdump here")
	}
	all := spelledOut(t)
	var flat []byte
	for _, s := range all {
		flat = append(flat, s.bytes...)
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, flat, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "-D", "-w", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "(bad)") && !strings.Contains(string(out), "tdpbf16ps") {
		t.Skipf("this objdump does not know the instructions: %v", err)
	}
	line := regexp.MustCompile(`(?m)^\s*[0-9a-f]+:\t([0-9a-f ]+)\t(.*)$`)
	found := line.FindAllStringSubmatch(string(out), -1)
	if len(found) != len(all) {
		t.Fatalf("objdump reads %d instructions, not %d", len(found), len(all))
	}
	for i, f := range found {
		code, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(f[1]), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if says := strings.Join(strings.Fields(f[2]), " "); says != all[i].says || string(code) != string(all[i].bytes) {
			t.Errorf("tiles_amd64.s:%d: objdump reads % x as %q, not %q", all[i].line, code, says, all[i].says)
		}
	}
}
