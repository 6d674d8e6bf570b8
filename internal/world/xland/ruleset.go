package xland

import (
	"errors"
	"fmt"
	"strings"
)

// Goals, by the first byte of their encoding.
const (
	goalNone = iota
	goalHold
	goalOnTile
	goalNear
	goalTileNear
	goalTileOnPosition
	goalOnPosition
	goalTileNearUp
	goalTileNearRight
	goalTileNearDown
	goalTileNearLeft
	goalNearUp
	goalNearRight
	goalNearDown
	goalNearLeft
	numGoals
)

// Rules, by the first byte of their encoding.
const (
	ruleNone = iota
	ruleHold
	ruleNear
	ruleTileNear
	ruleTileNearUp
	ruleTileNearRight
	ruleTileNearDown
	ruleTileNearLeft
	ruleNearUp
	ruleNearRight
	ruleNearDown
	ruleNearLeft
	numRules
)

// Bytes per encoding.
const (
	goalBytes = 5
	ruleBytes = 7
)

// Ruleset is a task in the Python package's encoding: a goal, rules, and the objects in the grid at
// the start of an episode. Rules and objects of zeros are padding. The padding of objects changes
// the draws of a start.
type Ruleset struct {
	Goal  [goalBytes]uint8
	Rules [][ruleBytes]uint8
	Tiles [][2]uint8
}

// Limits of a ruleset.
const (
	maxRules = 64
	maxTiles = 64
)

// Check returns an error if a room of the size cannot hold the ruleset. Rules that change walls are
// refused, because an agent could leave the room.
func (r *Ruleset) Check(size int) error {
	if len(r.Rules) > maxRules || len(r.Tiles) > maxTiles {
		return fmt.Errorf("a ruleset of %d rules and %d objects: at most %d and %d are read", len(r.Rules), len(r.Tiles), maxRules, maxTiles)
	}
	g := r.Goal
	if g[0] >= numGoals {
		return fmt.Errorf("goal of kind %d: kinds are 0 to %d", g[0], numGoals-1)
	}
	position := g[3:5]
	switch g[0] {
	case goalNone:
	case goalOnPosition:
		position = g[1:3]
	case goalTileNear, goalTileNearUp, goalTileNearRight, goalTileNearDown, goalTileNearLeft:
		if err := checkTile(g[3], g[4]); err != nil {
			return fmt.Errorf("goal: %w", err)
		}
		if g[1] == Wall || g[3] == Wall {
			return errors.New("goal of a wall beside a tile: what lies behind the outer wall is not defined")
		}
		fallthrough
	default:
		if err := checkTile(g[1], g[2]); err != nil {
			return fmt.Errorf("goal: %w", err)
		}
	}
	if (g[0] == goalOnPosition || g[0] == goalTileOnPosition) && (int(position[0]) >= size || int(position[1]) >= size) {
		return fmt.Errorf("goal at row %d, column %d: the room has %d of each", position[0], position[1], size)
	}
	for i, e := range r.Rules {
		if e[0] >= numRules {
			return fmt.Errorf("rule %d of kind %d: kinds are 0 to %d", i, e[0], numRules-1)
		}
		if e[0] == ruleNone {
			continue
		}
		for at := 1; at < ruleBytes; at += 2 {
			if err := checkTile(e[at], e[at+1]); err != nil {
				return fmt.Errorf("rule %d: %w", i, err)
			}
		}
		if e[1] == Wall || e[3] == Wall && ruleOfTiles(e[0]) {
			return fmt.Errorf("rule %d turns walls: an agent could leave the room", i)
		}
	}
	for i, t := range r.Tiles {
		if err := checkTile(t[0], t[1]); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	if n := (size - 2) * (size - 2); len(r.Tiles) >= n {
		return fmt.Errorf("%d objects and an agent in a room of %d cells", len(r.Tiles), n)
	}
	return nil
}

// ruleOfTiles reports whether the rule applies to two adjacent tiles.
func ruleOfTiles(kind uint8) bool { return kind >= ruleTileNear && kind <= ruleTileNearLeft }

// rule is a decoded rule. In a rule about the agent, a is the tile that changes.
type rule struct {
	kind    uint8
	a, b    Tile
	product Tile
}

// goal is a decoded goal.
type goal struct {
	kind uint8
	a, b Tile
	y, x uint8 // of goals with a position
}

// program is a decoded ruleset.
type program struct {
	goal  goal
	rules []rule
	tiles []Tile
	acts  uint8 // bit a is set if a rule may apply after action a
}

// compile decodes a ruleset, which must have passed Check.
func (r *Ruleset) compile() *program {
	g := r.Goal
	p := &program{goal: goal{kind: g[0]}}
	switch g[0] {
	case goalOnPosition:
		p.goal.y, p.goal.x = g[1], g[2]
	case goalTileOnPosition:
		p.goal.a, p.goal.y, p.goal.x = TileOf(g[1], g[2]), g[3], g[4]
	default:
		p.goal.a, p.goal.b = TileOf(g[1], g[2]), TileOf(g[3], g[4])
	}
	for _, e := range r.Rules {
		o := rule{kind: e[0], a: TileOf(e[1], e[2]), product: TileOf(e[3], e[4])}
		switch {
		case e[0] == ruleNone:
			continue
		case e[0] == ruleHold:
			p.acts |= 1 << PickUp
		case e[0] == ruleNear:
			p.acts |= 1 << Forward
		case ruleOfTiles(e[0]):
			o.b, o.product = TileOf(e[3], e[4]), TileOf(e[5], e[6])
			p.acts |= 1 << PutDown
		default:
			p.acts |= 1<<Forward | 1<<PutDown
		}
		p.rules = append(p.rules, o)
	}
	for _, t := range r.Tiles {
		p.tiles = append(p.tiles, TileOf(t[0], t[1]))
	}
	return p
}

var sides = [...]string{"up", "right", "down", "left"}

// Describe returns a description of the ruleset.
func (r *Ruleset) Describe() string {
	p := r.compile()
	var parts []string
	switch g := p.goal; {
	case g.kind == goalNone:
		parts = append(parts, "no goal")
	case g.kind == goalHold:
		parts = append(parts, fmt.Sprintf("hold the %v", g.a))
	case g.kind == goalOnTile:
		parts = append(parts, fmt.Sprintf("stand on the %v", g.a))
	case g.kind == goalNear:
		parts = append(parts, fmt.Sprintf("stand beside the %v", g.a))
	case g.kind == goalTileNear:
		parts = append(parts, fmt.Sprintf("put the %v and the %v beside each other", g.a, g.b))
	case g.kind == goalTileOnPosition:
		parts = append(parts, fmt.Sprintf("put the %v at row %d, column %d", g.a, g.y, g.x))
	case g.kind == goalOnPosition:
		parts = append(parts, fmt.Sprintf("stand at row %d, column %d", g.y, g.x))
	case g.kind <= goalTileNearLeft:
		parts = append(parts, fmt.Sprintf("put the %v %s of the %v", g.b, sides[g.kind-goalTileNearUp], g.a))
	default:
		parts = append(parts, fmt.Sprintf("stand with the %v %s of you", g.a, sides[g.kind-goalNearUp]))
	}
	for _, u := range p.rules {
		switch {
		case u.kind == ruleHold:
			parts = append(parts, fmt.Sprintf("held, the %v turns into the %v", u.a, u.product))
		case u.kind == ruleNear:
			parts = append(parts, fmt.Sprintf("beside you, the %v turns into the %v", u.a, u.product))
		case u.kind == ruleTileNear:
			parts = append(parts, fmt.Sprintf("beside each other, the %v and the %v turn into the %v", u.a, u.b, u.product))
		case u.kind <= ruleTileNearLeft:
			parts = append(parts, fmt.Sprintf("the %v %s of the %v turns into the %v with it", u.b, sides[u.kind-ruleTileNearUp], u.a, u.product))
		default:
			parts = append(parts, fmt.Sprintf("%s of you, the %v turns into the %v", sides[u.kind-ruleNearUp], u.a, u.product))
		}
	}
	return strings.Join(parts, "; ")
}

// bytes encodes the ruleset for files: the goal, the number of rules, the rules, the number of
// objects, the objects.
func (r *Ruleset) bytes() []byte {
	out := append(r.Goal[:len(r.Goal):len(r.Goal)], uint8(len(r.Rules)))
	for _, e := range r.Rules {
		out = append(out, e[:]...)
	}
	out = append(out, uint8(len(r.Tiles)))
	for _, t := range r.Tiles {
		out = append(out, t[:]...)
	}
	return out
}

var errRuleset = errors.New("a ruleset's bytes are cut short or too many")

// parseRuleset decodes bytes. The caller must check the ruleset.
func parseRuleset(data []byte) (*Ruleset, error) {
	r := &Ruleset{}
	if len(data) < goalBytes+1 {
		return nil, errRuleset
	}
	copy(r.Goal[:], data)
	rules, data := int(data[goalBytes]), data[goalBytes+1:]
	if len(data) < rules*ruleBytes+1 {
		return nil, errRuleset
	}
	for i := range rules {
		r.Rules = append(r.Rules, [ruleBytes]uint8(data[i*ruleBytes:][:ruleBytes]))
	}
	data = data[rules*ruleBytes:]
	tiles, data := int(data[0]), data[1:]
	if len(data) != 2*tiles {
		return nil, errRuleset
	}
	for i := range tiles {
		r.Tiles = append(r.Tiles, [2]uint8(data[2*i:]))
	}
	return r, nil
}
