package xland

import (
	"fmt"
	"maps"
	"slices"

	"haul/internal/rng"
)

// Recipe configures how rulesets of a benchmark are drawn. A goal's tiles are made by rules from
// tiles that other rules make, Depth levels deep. A branch ends early with probability Prune.
// Objects and rules that lead nowhere are added.
type Recipe struct {
	Depth       int     // levels of rules needed for the goal
	Prune       float64 // probability that a tile lies in the grid from the start instead of being made by a rule
	DeadRules   int     // largest number of rules that lead nowhere; 0: none are drawn
	DeadObjects int     // number of objects that no rule of the goal uses
}

// Recipes are the recipes of the public benchmarks.
var Recipes = map[string]Recipe{
	"trivial": {DeadObjects: 3},
	"small":   {Depth: 1, Prune: 0.3, DeadRules: 2, DeadObjects: 2},
	"medium":  {Depth: 2, Prune: 0.1, DeadRules: 3, DeadObjects: 2},
	"high":    {Depth: 3, Prune: 0.1, DeadRules: 4, DeadObjects: 1},
}

// RecipeNames returns the names, easiest first.
func RecipeNames() []string {
	return slices.SortedFunc(maps.Keys(Recipes), func(a, b string) int { return Recipes[a].Depth - Recipes[b].Depth })
}

// most returns the largest number of rules and objects of a ruleset. Public files pad to the
// largest numbers that they contain, which equal these in large files.
func (r Recipe) most() (rules, tiles int) {
	tiles = 2
	for range r.Depth {
		rules, tiles = rules+tiles, 2*tiles
	}
	return max(1, rules+r.DeadRules), tiles + r.DeadObjects + 2*r.DeadRules
}

// tilesOf returns every kind in every colour, kind by kind, in the public generator's order.
func tilesOf(kinds ...uint8) (out []Tile) {
	for _, k := range kinds {
		for _, c := range []uint8{Red, Green, Blue, Purple, Yellow, Grey, White, Brown, Pink, Orange} {
			out = append(out, TileOf(k, c))
		}
	}
	return out
}

// Tiles to draw from: objects that can be picked up; these and goal tiles; and products of rules,
// where the floor stands for no product.
var (
	held          = tilesOf(Ball, Square, Pyramid, Key, Star, Hex)
	adjacentTiles = tilesOf(Ball, Square, Pyramid, Key, Star, Hex, GoalTile)
	heldSet       = newPySet(held)
	nearSet       = newPySet(adjacentTiles)
	madeSet       = newPySet(append(slices.Clone(held), floorTile))
)

// Kinds by drawn number: hold; near the agent on any side, up, down, left, right; the same for two
// tiles.
var (
	goalKinds = [...]uint8{goalHold, goalNear, goalNearUp, goalNearDown, goalNearLeft, goalNearRight,
		goalTileNear, goalTileNearUp, goalTileNearDown, goalTileNearLeft, goalTileNearRight}
	ruleKinds = [...]uint8{ruleHold, ruleNear, ruleNearUp, ruleNearDown, ruleNearLeft, ruleNearRight,
		ruleTileNear, ruleTileNearUp, ruleTileNearDown, ruleTileNearLeft, ruleTileNearRight}
)

// Sampler draws the rulesets of a benchmark in sequence. It makes the same draws as
// scripts/ruleset_generator.py of the public repository, so the same seed gives the same rulesets,
// repeated ones included.
type Sampler struct {
	recipe Recipe
	random *rng.Python
}

// PublicSeed is the seed of the public benchmarks.
const PublicSeed = 42

// NewSampler returns a drawer at the start of the named benchmark.
func NewSampler(name string, seed uint32) (*Sampler, error) {
	r, ok := Recipes[name]
	if !ok {
		return nil, fmt.Errorf("unknown tasks %q: use %s", name, oneOf(RecipeNames()))
	}
	return &Sampler{r, rng.NewPython(seed)}, nil
}

func (d *Sampler) choice(from []Tile) Tile { return from[d.random.Below(uint32(len(from)))] }

// rule draws a rule that makes a tile from unused tiles.
func (d *Sampler) rule(product Tile, used []Tile) (e [ruleBytes]uint8, in []Tile) {
	i := d.random.Below(uint32(len(ruleKinds)))
	if i < 6 {
		in = []Tile{d.choice(heldSet.minus(used))}
	} else {
		a := d.choice(nearSet.minus(used))
		in = []Tile{a, d.choice(heldSet.minus(used))}
	}
	e[0] = ruleKinds[i]
	at := e[1:]
	for _, t := range append(slices.Clone(in), product) {
		at[0], at[1] = t.Kind(), t.Colour()
		at = at[2:]
	}
	return e, in
}

// Next draws a ruleset, padded to the largest number of rules and objects.
func (d *Sampler) Next() *Ruleset {
	r := &Ruleset{}
	var tiles []Tile
	i := d.random.Below(uint32(len(goalKinds)))
	var chain []Tile
	switch {
	case i == 0:
		chain = []Tile{d.choice(held)}
	case i < 6:
		chain = []Tile{d.choice(adjacentTiles)}
	default:
		a := d.choice(adjacentTiles)
		chain = []Tile{a, d.choice(held)}
	}
	r.Goal[0] = goalKinds[i]
	for j, t := range chain {
		r.Goal[1+2*j], r.Goal[2+2*j] = t.Kind(), t.Colour()
	}
	used := slices.Clone(chain)
	if d.recipe.Depth == 0 {
		tiles = append(tiles, chain...)
	}
	for level := range d.recipe.Depth {
		var next []Tile
		for len(chain) > 0 {
			product := chain[len(chain)-1]
			chain = chain[:len(chain)-1]
			if d.random.Float64() < d.recipe.Prune {
				tiles = append(tiles, product)
				continue
			}
			e, in := d.rule(product, used)
			used, next = append(used, in...), append(next, in...)
			r.Rules = append(r.Rules, e)
			if level == d.recipe.Depth-1 {
				tiles = append(tiles, in...)
			}
		}
		chain = next
	}
	left := nearSet.minus(used)
	for range d.recipe.DeadObjects {
		tiles = append(tiles, left[int(d.random.Float64()*float64(len(left)))])
	}
	if d.recipe.DeadRules > 0 {
		for range d.random.Below(uint32(d.recipe.DeadRules + 1)) {
			product := d.choice(madeSet.minus(used))
			e, in := d.rule(product, nil)
			r.Rules, tiles = append(r.Rules, e), append(tiles, in...)
		}
	}
	rules, objects := d.recipe.most()
	for len(r.Rules) < rules {
		r.Rules = append(r.Rules, [ruleBytes]uint8{})
	}
	for _, t := range tiles {
		r.Tiles = append(r.Tiles, [2]uint8{t.Kind(), t.Colour()})
	}
	for len(r.Tiles) < objects {
		r.Tiles = append(r.Tiles, [2]uint8{})
	}
	return r
}
