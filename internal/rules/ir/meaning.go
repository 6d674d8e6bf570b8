package ir

import "math"

// Apply returns the result of an operation on words. It is the definition: every other form of the
// rules returns the same word, where all NaN count as one.
func Apply(o Op, a, b, c uint32) uint32 {
	i, j := int32(a), int32(b)
	x, y := math.Float32frombits(a), math.Float32frombits(b)
	switch o {
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	case Div:
		if j == 0 {
			return 0
		}
		return uint32(i / j)
	case Rem:
		if j == 0 {
			return 0
		}
		return uint32(i % j)
	case And:
		return a & b
	case Or:
		return a | b
	case Xor:
		return a ^ b
	case Shl:
		return a << b
	case Shr:
		return uint32(i >> b)
	case Min:
		return uint32(min(i, j))
	case Max:
		return uint32(max(i, j))
	case Eq:
		return truth(a == b)
	case Lt:
		return truth(i < j)
	case Le:
		return truth(i <= j)
	case FAdd:
		return math.Float32bits(x + y)
	case FSub:
		return math.Float32bits(x - y)
	case FMul:
		return math.Float32bits(x * y)
	case FDiv:
		return math.Float32bits(x / y)
	case FMin:
		return math.Float32bits(min(x, y))
	case FMax:
		return math.Float32bits(max(x, y))
	case FEq:
		return truth(x == y)
	case FLt:
		return truth(x < y)
	case FLe:
		return truth(x <= y)
	case FNeg:
		return a ^ 1<<31
	case FAbs:
		return a &^ (1 << 31)
	case FSqrt:
		return math.Float32bits(float32(math.Sqrt(float64(x))))
	case Float:
		return math.Float32bits(float32(i))
	case Int:
		return uint32(ToInt(x))
	case Select:
		if a != 0 {
			return b
		}
		return c
	case MulDiv:
		if c == 0 {
			return 0
		}
		return uint32(int64(i) * int64(j) / int64(int32(c)))
	case Below:
		return uint32(uint64(a) * uint64(max(j, 0)) >> 32)
	case Unit:
		return math.Float32bits(float32(a>>8) * 0x1p-24)
	}
	panic("ir: an operation without a meaning")
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// ToInt converts towards zero. It saturates, and NaN is 0, as PTX's cvt.rzi.s32.f32.
func ToInt(x float32) int32 {
	switch {
	case x != x:
		return 0
	case x >= 1<<31:
		return math.MaxInt32
	case x < -1<<31:
		return math.MinInt32
	}
	return int32(x)
}
