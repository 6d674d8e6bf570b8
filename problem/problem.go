// Package problem declares what the rules of a routing problem may use besides Go itself: places
// and their distances, random numbers for drawing instances, and structs that a node embeds where
// it needs more than its place.
//
// A problem is one Go file that imports this package alone. It declares the types Instance, Node,
// Vehicle and, if drawing has settings, Settings, and the methods that docs/rules.md lists. Haul
// compiles the file when it starts. The file is also an ordinary Go package that can be tested and
// debugged.
//
// All numbers are float32, int32 or bool.
package problem

// Place is a point of the unit square. A node that has coordinates embeds it. Haul draws the places
// of all nodes before anything else of an instance.
type Place struct{ X, Y float32 }

// Site is the position of a node in its instance. A node that needs it embeds it. Haul fills it in
// before any method is called; the rules may read it and may not change it.
type Site struct {
	Index int32 // node number: depot 0, customers from 1, further depots last
	Depot int32 // number of the depot at this node, -1 at a customer
}

// Opens lets a visit open another node. A node embeds it; Draw or Derive fills it in.
type Opens struct {
	Opens  int32 // number of the node that a visit to this one opens; 0 opens none
	Closed bool  // whether this node may be visited only after it has been opened
}

// Changing holds the one number of a node that Move may change, such as a demand that is delivered
// in parts. A node embeds it. Each route of an instance has its own copy.
type Changing struct{ Amount int32 }

// Distance returns the Euclidean distance of two places.
func Distance(a, b Place) float32 {
	dx, dy := b.X-a.X, b.Y-a.Y
	return Sqrt(float32(dx*dx) + float32(dy*dy))
}

// Random hands out the random words of one instance or one node. A call takes the next word, so the
// order of calls must not depend on data: in a branch or loop, At must name the word.
type Random struct {
	word func(k int32) uint32
	next int32
}

// NewRandom returns a Random whose word k is word(k). Haul and tests call it; rules do not.
func NewRandom(word func(k int32) uint32) *Random { return &Random{word: word} }

// At returns a Random whose next word is word k. It does not change which word r takes next.
func (r *Random) At(k int32) *Random { return &Random{word: r.word, next: k} }

func (r *Random) take() uint32 {
	w := r.word(r.next)
	r.next++
	return w
}

// Float returns a multiple of 2^-24 that is uniform in [0, 1).
func (r *Random) Float() float32 { return float32(r.take()>>8) * 0x1p-24 }

// Below returns an integer that is uniform in [0, n). It returns 0 if n is at most 1.
func (r *Random) Below(n int32) int32 { return int32(uint64(r.take()) * uint64(max(n, 0)) >> 32) }

// Uniform returns low + Float()·(high - low).
func (r *Random) Uniform(low, high float32) float32 { return low + float32(r.Float()*(high-low)) }

// MulDiv returns a·b/c rounded towards zero, computed in 64 bits and cut to 32; 0 if c is 0.
func MulDiv(a, b, c int32) int32 {
	if c == 0 {
		return 0
	}
	return int32(int64(a) * int64(b) / int64(c))
}
