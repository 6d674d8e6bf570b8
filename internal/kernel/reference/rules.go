package reference

// The rules of a route, plainly: where a vehicle may go next, and what going there changes.
// kernel.Rollout states them; cpu/rules.go and cuda/src/routing/rules.cuh are the same in fast
// forms. The referee (vrp) judges finished routes and shares nothing with any of them.

// Tour is how far a vehicle has come: the rules of the problem and nothing else.
type Tour struct {
	demand   []int32
	capacity int32
	visited  []bool
	unserved int
	Current  int
	// where the policy sees the vehicle: Current, but before the first step of a start that is viewed
	Seen int
	Left int32 // load left
	Done bool  // back at the depot with everyone served
}

// NewTour stands at the depot with a full load.
func NewTour(demand []int32, capacity int32) *Tour {
	return &Tour{demand: demand, capacity: capacity, visited: make([]bool, len(demand)),
		unserved: len(demand) - 1, Left: capacity}
}

// fits: customer j may be next.
func (t *Tour) fits(j int) bool { return !t.visited[j] && t.demand[j] <= t.Left }

// home: the depot may be next. At the depot it may not while customers remain.
func (t *Tour) home() bool { return t.unserved == 0 || t.Current != 0 }

// Allowed lists the nodes that may come next, in order.
func (t *Tour) Allowed() []int {
	var out []int
	if t.home() {
		out = append(out, 0)
	}
	for j := 1; j < len(t.demand); j++ {
		if t.fits(j) {
			out = append(out, j)
		}
	}
	return out
}

// Visit goes to node j.
func (t *Tour) Visit(j int) {
	t.Current, t.Seen = j, j
	if j == 0 {
		t.Left = t.capacity
		t.Done = t.unserved == 0
		return
	}
	t.visited[j] = true
	t.unserved--
	t.Left -= t.demand[j]
}

// Scored is how many of a row's actions the policy answers for.
func Scored(steps int32, forced bool) int {
	if forced {
		return int(steps) - 1
	}
	return int(steps)
}
