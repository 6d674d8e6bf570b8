package ir

// Op is an operation on 32-bit words. A bool is the word 0 or 1.
type Op uint8

// The operations. meaning.go defines each of them; F marks operations on float32.
const (
	Const  Op = iota // Value.Imm
	Input            // word Func.Inputs[Imm]
	Add              // int32, wraps
	Sub              // int32, wraps
	Mul              // int32, wraps
	Div              // int32, towards zero; x/0 is 0
	Rem              // int32; x%0 is 0
	And              // bits
	Or               // bits
	Xor              // bits
	Shl              // by at least 32, or by less than 0: 0
	Shr              // arithmetic; by at least 32, or by less than 0: the sign
	Min              // int32
	Max              // int32
	Eq               // words are equal
	Lt               // int32
	Le               // int32
	FAdd             // float32, rounded to nearest, as all below
	FSub             //
	FMul             //
	FDiv             //
	FMin             // NaN if either is; -0 is below 0
	FMax             // NaN if either is; -0 is below 0
	FEq              // false on NaN
	FLt              // false on NaN
	FLe              // false on NaN
	FNeg             // flips the sign
	FAbs             // clears the sign
	FSqrt            // correctly rounded
	Float            // int32 to float32
	Int              // float32 to int32, towards zero; saturates; NaN is 0
	Select           // second operand if the first is 1, else the third
	MulDiv           // int32 a·b/c in 64 bits, cut to 32; 0 if c is 0
	Below            // high word of the product of the uint32 a and the int32 b; a negative b counts as 0
	Unit             // uint32 a/256, rounded down, times 2^-24, as float32
	ops
)

// Kind is how the rules read a word.
type Kind uint8

// The kinds.
const (
	Int32 Kind = iota
	Float32
	Bool
)

// String returns the name of the Go type.
func (k Kind) String() string { return [...]string{"int32", "float32", "bool"}[k] }

// Spec describes an operation.
type Spec struct {
	Name    string
	Args    []Kind // of the operands
	Result  Kind
	Commute bool // the first two operands may be exchanged
}

var specs = [ops]Spec{
	Const:  {Name: "const"},
	Input:  {Name: "input"},
	Add:    {"add", two(Int32), Int32, true},
	Sub:    {"sub", two(Int32), Int32, false},
	Mul:    {"mul", two(Int32), Int32, true},
	Div:    {"div", two(Int32), Int32, false},
	Rem:    {"rem", two(Int32), Int32, false},
	And:    {"and", two(Int32), Int32, true},
	Or:     {"or", two(Int32), Int32, true},
	Xor:    {"xor", two(Int32), Int32, true},
	Shl:    {"shl", two(Int32), Int32, false},
	Shr:    {"shr", two(Int32), Int32, false},
	Min:    {"min", two(Int32), Int32, true},
	Max:    {"max", two(Int32), Int32, true},
	Eq:     {"eq", two(Int32), Bool, true},
	Lt:     {"lt", two(Int32), Bool, false},
	Le:     {"le", two(Int32), Bool, false},
	FAdd:   {"fadd", two(Float32), Float32, true},
	FSub:   {"fsub", two(Float32), Float32, false},
	FMul:   {"fmul", two(Float32), Float32, true},
	FDiv:   {"fdiv", two(Float32), Float32, false},
	FMin:   {"fmin", two(Float32), Float32, true},
	FMax:   {"fmax", two(Float32), Float32, true},
	FEq:    {"feq", two(Float32), Bool, true},
	FLt:    {"flt", two(Float32), Bool, false},
	FLe:    {"fle", two(Float32), Bool, false},
	FNeg:   {"fneg", []Kind{Float32}, Float32, false},
	FAbs:   {"fabs", []Kind{Float32}, Float32, false},
	FSqrt:  {"fsqrt", []Kind{Float32}, Float32, false},
	Float:  {"float", []Kind{Int32}, Float32, false},
	Int:    {"int", []Kind{Float32}, Int32, false},
	Select: {"select", []Kind{Bool, Int32, Int32}, Int32, false},
	MulDiv: {"muldiv", []Kind{Int32, Int32, Int32}, Int32, false},
	Below:  {"below", two(Int32), Int32, false},
	Unit:   {"unit", []Kind{Int32}, Float32, false},
}

func two(k Kind) []Kind { return []Kind{k, k} }

// Spec returns the description of an operation.
func (o Op) Spec() *Spec { return &specs[o] }

// String returns the operation's name.
func (o Op) String() string { return specs[o].Name }

// Ops returns the operations that compute: all but Const and Input.
func Ops() []Op {
	out := make([]Op, 0, ops)
	for o := Add; o < ops; o++ {
		out = append(out, o)
	}
	return out
}
