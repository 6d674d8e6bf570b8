package reference

import (
	"haul/internal/kernel"
	"haul/internal/rng"
)

// dropped is what a dropout multiplies an element by: 0, or the scale of what it keeps. Row counts
// the rows of the instance of that global index.
func dropped[F Float](d kernel.Drop, instance uint64, row, column, width int) F {
	if d.Rate == 0 {
		return 1
	}
	seed := [2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)}
	blocks := (width + 31) / 32
	draw := uint32(d.Site)<<24 + uint32(row*blocks+column/32)
	words := rng.Rounds(rng.ShortRounds, seed, [4]uint32{uint32(instance), uint32(instance >> 32), draw, uint32(rng.Dropout)})
	at := func(i, further int) uint32 { return words[i%4] >> ((column + further) % 32) & 1 }
	var number uint32
	for i := range 4 {
		number |= at(i, 0)<<(12+i) | (at(i, 8)^at(i+1, 16))<<(8+i) | at(i, 24)<<(4+i) | at(i, 16)<<i
	}
	if number < d.Threshold() {
		return 0
	}
	return F(d.Scale())
}

// droppedOf is dropped for row r of a matrix whose row 0 is the first of instance `first`.
func droppedOf[F Float](d kernel.Drop, first uint64, r, column, width int) F {
	nodes := max(1, d.Nodes) // where nothing is dropped it may be unset
	return dropped[F](d, first+uint64(r/nodes), r%nodes, column, width)
}

// Dropout: y = residual + drop(x). first is the global index of the instance of row 0.
func Dropout[F Float](y, x, residual Matrix[F], d kernel.Drop, first uint64) {
	for r := range x.Rows {
		for c, v := range x.Row(r) {
			v *= droppedOf[F](d, first, r, c, x.Cols)
			if residual.Data != nil {
				v += residual.Row(r)[c]
			}
			y.Row(r)[c] = v
		}
	}
}

// Generate draws the instance of global index g. Coordinates are float32 numbers whatever F is, so
// that every device has the same bits.
func Generate[F Float](posX, posY []F, nodes []int32, o *kernel.Generate, g uint64) {
	if o.Set.Problem() != nil {
		fileGenerate(posX, posY, nodes, o, g)
		return
	}
	symmetry := 0
	if o.Symmetries > 1 {
		symmetry = int(g % uint64(o.Symmetries))
		g /= uint64(o.Symmetries)
	}
	wide := len(o.Set.Columns())
	for j := range posX {
		word := rng.At(o.Seed, g, uint32(j), o.Purpose)
		x, y := rng.Float(word[0]), rng.Float(word[1])
		if o.Grid > 0 {
			points := uint32(o.Grid) + 1
			x = float32(rng.Below(word[0], points)) / float32(o.Grid)
			y = float32(rng.Below(word[1], points)) / float32(o.Grid)
		}
		x, y = reflect(x, y, symmetry)
		posX[j], posY[j] = F(x), F(y)
		nodes[j*wide] = o.DemandMin + int32(rng.Below(word[2], uint32(o.DemandMax-o.DemandMin)+1))
	}
	nodes[0] = 0
	if o.CapacityMax > 0 {
		word := rng.At(o.Seed, g, 0, o.Purpose)
		span := uint32(o.CapacityMax-o.CapacityMin) + 1
		q := int64(o.CapacityMin) + int64(min(rng.Below(word[2], span), rng.Below(word[3], span)))
		for j := range posX {
			nodes[j*wide] = int32(int64(nodes[j*wide]) * kernel.LoadUnit / q)
		}
	}
	if o.Set != kernel.CVRP { // which has nothing else
		x, y := make([]float32, len(posX)), make([]float32, len(posY))
		for j := range x {
			x[j], y[j] = float32(posX[j]), float32(posY[j])
		}
		Draw(o.Set, nodes, x, y, &o.Drawing, g)
		for j := range x {
			posX[j], posY[j] = F(x[j]), F(y[j])
		}
	}
}

// reflect applies symmetry k of the unit square: bit 0 mirrors x, bit 1 mirrors y, bit 2 then swaps
// them.
func reflect(x, y float32, k int) (float32, float32) {
	if k&1 != 0 {
		x = 1 - x
	}
	if k&2 != 0 {
		y = 1 - y
	}
	if k&4 != 0 {
		x, y = y, x
	}
	return x, y
}
