package problem

import "math"

// Sqrt returns the square root of x, correctly rounded; NaN if x is negative.
func Sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// Abs returns the absolute value of x.
func Abs(x float32) float32 { return float32(math.Abs(float64(x))) }

// Infinity returns positive infinity.
func Infinity() float32 { return float32(math.Inf(1)) }
