//go:build unix && (amd64 || arm64)

package isa

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRowsShort: a slice one float short of its shape panics with the one message, and touches
// nothing.
func TestRowsShort(t *testing.T) {
	s := shape{3, 11, 16}
	eachSet(t, func(t *testing.T, set *Primitives) {
		if set == &Plain {
			t.Skip("plain Go has the compiler's checks")
		}
		rng := rand.New(rand.NewPCG(9, 10))
		for _, c := range rowCalls(rng, s) {
			for i := range c.sizes {
				if c.name == "sumSquares" || c.name == "scale" || len(c.sizes)-1 == i && (c.name == "gelu" || c.name == "geluGrad" || c.name == "exp" || c.name == "add" || c.name == "add4") ||
					i == 0 && (c.name == "query" || c.name == "adamw" || c.name == "momentum" || c.name == "descend") {
					continue // the slice that gives the length
				}
				b := c.buffers(rng, heap)
				b[i] = b[i][:len(b[i])-1]
				func() {
					defer func() {
						if r := recover(); r != shapeMessage {
							t.Errorf("%s with argument %d short: recovered %v", c.name, i, r)
						}
					}()
					c.run(set, b)
				}()
			}
		}
	})
}

// TestSetsKeepToTheirRegisters: the generator's register allocator knows 32 vector registers; AVX2
// has 16, and no opmasks.
func TestSetsKeepToTheirRegisters(t *testing.T) {
	text, err := os.ReadFile("rows_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	wide := regexp.MustCompile(`\b(Z\d+|K[0-7]|[XY](1[6-9]|2\d|3[01]))\b`)
	function := ""
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "TEXT") {
			function = line
		}
		if strings.Contains(function, "AVX2(SB)") && wide.MatchString(line) {
			t.Errorf("rows_amd64.s:%d: %s in %s", i+1, strings.TrimSpace(line), function)
		}
	}
}
