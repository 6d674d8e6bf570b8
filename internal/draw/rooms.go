package draw

import (
	"image/color"
	"io"

	"gonum.org/v1/plot/vg"
)

// Walk is an agent's path through a grid room: its cells in order, the first included. y counts
// from the top.
type Walk struct {
	Caption string
	Cells   [][2]int
	Goal    [2]int
	Key     *[2]int // a cell to visit before the goal; nil: there is none
}

// The page of a room, in points.
const (
	cellSide   = vg.Length(30)
	roomHeader = vg.Length(56)
)

// floor is darker than the field of a map, so that the borders of cells are visible.
var floor = color.NRGBA{R: 0xec, G: 0xec, B: 0xe8, A: 0xff}

// keyFill is pale, so that the path over it is visible.
var keyFill = color.NRGBA{R: 0xdd, G: 0xcc, B: 0x77, A: 0xff}

// Rooms draws paths through a room of side×side cells next to each other. The goal and a key are
// filled in different colours, the start has a ring, and the path gets darker over time. A cell in
// which the agent stayed has a disc that grows with the number of steps.
func Rooms(w io.Writer, f Format, title string, side int, walks ...Walk) error {
	room := cellSide * vg.Length(side)
	page := room + 2*margin
	c, err := newCanvas(f, page*vg.Length(len(walks)), room+roomHeader+margin)
	if err != nil {
		return err
	}
	for i, walk := range walks {
		d := pen{c}
		if i == 0 {
			d.text(ink, face(15, true), vg.Point{X: margin, Y: room + margin + 32}, title)
		}
		d.text(faded, face(11, false), vg.Point{X: margin, Y: room + margin + 12}, walk.Caption)
		drawRoom(d, side, walk)
		c.Translate(vg.Point{X: page})
	}
	return encode(w, f, c)
}

func drawRoom(d pen, side int, walk Walk) {
	size := cellSide * vg.Length(side)
	d.rect(floor, margin, margin, size, size)
	corner := func(x, y int) vg.Point {
		return vg.Point{X: margin + cellSide*vg.Length(x), Y: margin + cellSide*vg.Length(side-1-y)}
	}
	goal := corner(walk.Goal[0], walk.Goal[1])
	d.rect(palette[4], goal.X, goal.Y, cellSide, cellSide)
	if walk.Key != nil {
		key := corner(walk.Key[0], walk.Key[1])
		d.rect(keyFill, key.X, key.Y, cellSide, cellSide)
	}
	for i := range side + 1 {
		at := margin + cellSide*vg.Length(i)
		d.line(paper, 1, vg.Point{X: at, Y: margin}, vg.Point{X: at, Y: margin + size})
		d.line(paper, 1, vg.Point{X: margin, Y: at}, vg.Point{X: margin + size, Y: at})
	}
	if len(walk.Cells) == 0 {
		return
	}
	centre := func(c [2]int) vg.Point { return corner(c[0], c[1]).Add(vg.Point{X: cellSide / 2, Y: cellSide / 2}) }
	stayed := make([]int, side*side)
	for i := 1; i < len(walk.Cells); i++ {
		from, to := walk.Cells[i-1], walk.Cells[i]
		if from == to {
			stayed[to[1]*side+to[0]]++
			continue
		}
		shade := palette[1]
		shade.A = uint8(60 + 195*i/len(walk.Cells))
		d.line(shade, 3, centre(from), centre(to))
	}
	for cell, n := range stayed {
		if n > 0 {
			d.disc(palette[1], centre([2]int{cell % side, cell / side}), min(cellSide*0.42, 3+vg.Length(n)))
		}
	}
	start := centre(walk.Cells[0])
	d.disc(ink, start, 6)
	d.disc(paper, start, 3.5)
}
