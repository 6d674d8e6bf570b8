package ptx

import (
	"strings"
	"testing"

	"haul/internal/rules/ir"
)

// sum returns a function of two words of the vehicle.
func sum() *ir.Func {
	b := ir.NewBuilder("sum")
	x, y := b.Input(ir.Word{Source: ir.Vehicle, Index: 0}), b.Input(ir.Word{Source: ir.Vehicle, Index: 2})
	return b.Finish([]int32{b.Do(ir.Add, x, y), x})
}

func TestSplice(t *testing.T) {
	table := map[string]Instruction{"rule_sum": {sum(), []ir.Word{{Source: ir.Vehicle, Index: 0}, {Source: ir.Vehicle, Index: 1}, {Source: ir.Vehicle, Index: 2}}}}
	// a result is an input of the other result
	got, err := Splice("before;\n\trule_sum %r2, %r1, %r1, %r9, %r2;\nafter;", table)
	want := "before;\n\t{\n\t.reg .b32 %rule_w<3>;\n\tadd.s32 %rule_w0, %r1, %r2;\n\tmov.b32 %rule_w1, %rule_w0;\n\tmov.b32 %rule_w2, %r1;\n\tmov.b32 %r2, %rule_w1;\n\tmov.b32 %r1, %rule_w2;\n\t}\nafter;"
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	for text, part := range map[string]string{
		"rule_sum %r2, %r1, %r1, %r9, %r2":       "does not end",
		"rule_sum %r2, %r1, %r1, %r9;":           "4 operands, want 2 results and 3 inputs",
		"rule_sum %r2, %r1, %r1, %r9, %r2, %r3;": "6 operands",
		"rule_difference %r1;":                   "no such instruction",
		"rule_call;":                             "no such instruction",
		"\n\nrule_sum;":                          "line 3:",
	} {
		if _, err := Splice(text, table); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want %q", text, err, part)
		}
	}
	table["rule_sum"] = Instruction{sum(), []ir.Word{{Source: ir.Vehicle, Index: 0}}}
	if _, err := Splice("rule_sum %r2, %r1, %r1;", table); err == nil || !strings.Contains(err.Error(), "reads word 2 of vehicle, which is no operand") {
		t.Error(err)
	}
}
