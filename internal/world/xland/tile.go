// Package xland is XLand-MiniGrid (Nikulin et al. 2023, https://arxiv.org/abs/2312.12044): rooms
// with objects, a hidden goal, and rules that turn objects into others. `haul data` makes histories
// in it, and in-context agents are evaluated in it.
//
// Steps and starts equal those of the Python package xminigrid 0.9.3. Tiles, colours, actions,
// goals and rules have the package's numbers, and a start makes its random draws in the package's
// order. testdata holds checksums of a million steps of the package.
package xland

import "fmt"

// Kinds of tiles.
const (
	Empty uint8 = iota // also the cells outside the grid, and an empty pocket
	Floor
	Wall
	Ball
	Square
	Pyramid
	GoalTile
	Key
	DoorLocked
	DoorClosed
	DoorOpen
	Hex
	Star
	NumKinds
)

// Colours.
const (
	NoColour uint8 = iota
	Red
	Green
	Blue
	Purple
	Yellow
	Grey
	Black
	Orange
	White
	Brown
	Pink
	NumColours
)

// Tile is a kind and a colour as one number: kind·NumColours + colour.
type Tile uint8

// NumTiles is the number of tiles.
const NumTiles = int(NumKinds) * int(NumColours)

const (
	floorTile = Tile(Floor*NumColours + Black)
	wallTile  = Tile(Wall*NumColours + Grey)
)

// TileOf returns the tile of a kind and a colour.
func TileOf(kind, colour uint8) Tile { return Tile(kind*NumColours + colour) }

// Kind returns the kind of the tile.
func (t Tile) Kind() uint8 { return uint8(t) / NumColours }

// Colour returns the colour of the tile.
func (t Tile) Colour() uint8 { return uint8(t) % NumColours }

var kindNames = [NumKinds]string{"nothing", "floor", "wall", "ball", "square", "pyramid", "goal", "key", "locked door", "closed door", "open door", "hex", "star"}

var colourNames = [NumColours]string{"", "red", "green", "blue", "purple", "yellow", "grey", "black", "orange", "white", "brown", "pink"}

func (t Tile) String() string {
	if c := colourNames[t.Colour()]; c != "" {
		return c + " " + kindNames[t.Kind()]
	}
	return kindNames[t.Kind()]
}

// Properties of tiles, as bits.
const (
	walkable = 1 << iota
	pickable
	free   // objects can be put down on it
	blocks // it hides the cells behind it
)

var can = func() (out [256]uint8) {
	for t := range NumTiles {
		switch Tile(t).Kind() {
		case Floor:
			out[t] = walkable | free
		case GoalTile, DoorOpen:
			out[t] = walkable
		case Ball, Square, Pyramid, Key, Hex, Star:
			out[t] = pickable
		case Wall, DoorLocked, DoorClosed:
			out[t] = blocks
		}
	}
	return out
}()

// checkTile returns an error if the encoding is not a tile.
func checkTile(kind, colour uint8) error {
	if kind >= NumKinds || colour >= NumColours {
		return fmt.Errorf("tile (%d, %d): kinds are 0 to %d, colours 0 to %d", kind, colour, NumKinds-1, NumColours-1)
	}
	return nil
}
