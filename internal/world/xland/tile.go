// Package xland is XLand-MiniGrid (Nikulin et al. 2023, https://arxiv.org/abs/2312.12044): rooms
// with objects, a hidden goal, and rules that turn objects into others. Steps and starts equal
// those of the Python package xminigrid 0.9.3.
//
// What a reader could break: parity. Numbers of tiles, colours, actions, goals and rules are
// those of the package's encodings, and every draw of a start happens in the package's order;
// testdata holds checksums of a million of the package's steps.
package xland

import "fmt"

// Kinds of tiles.
const (
	Empty uint8 = iota // also what lies outside of the grid, and an empty pocket
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

// NumTiles is how many there are.
const NumTiles = int(NumKinds) * int(NumColours)

const (
	floorTile = Tile(Floor*NumColours + Black)
	wallTile  = Tile(Wall*NumColours + Grey)
)

// TileOf puts a kind and a colour together.
func TileOf(kind, colour uint8) Tile { return Tile(kind*NumColours + colour) }

// Kind of the tile.
func (t Tile) Kind() uint8 { return uint8(t) / NumColours }

// Colour of the tile.
func (t Tile) Colour() uint8 { return uint8(t) % NumColours }

var kindNames = [NumKinds]string{"nothing", "floor", "wall", "ball", "square", "pyramid", "goal", "key", "locked door", "closed door", "open door", "hex", "star"}

var colourNames = [NumColours]string{"", "red", "green", "blue", "purple", "yellow", "grey", "black", "orange", "white", "brown", "pink"}

func (t Tile) String() string {
	if c := colourNames[t.Colour()]; c != "" {
		return c + " " + kindNames[t.Kind()]
	}
	return kindNames[t.Kind()]
}

// What can be done with a tile, as bits by tile.
const (
	walkable = 1 << iota
	pickable
	free   // something can be put down on it
	blocks // nothing is seen behind it
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

// checkTile refuses an encoding that is no tile.
func checkTile(kind, colour uint8) error {
	if kind >= NumKinds || colour >= NumColours {
		return fmt.Errorf("tile (%d, %d): kinds are 0 to %d, colours 0 to %d", kind, colour, NumKinds-1, NumColours-1)
	}
	return nil
}
