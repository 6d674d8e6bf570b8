package cuda

// endings are, for every op, the nodes that its followers wait for, of all of it and, where it is
// done in parts, of each.
type endings[N comparable] struct {
	all   [][]N
	parts []map[int][]N
}

func newEndings[N comparable](ops int) *endings[N] {
	return &endings[N]{make([][]N, ops), make([]map[int][]N, ops)}
}

// set is for an op, or a part of one: parts add up.
func (e *endings[N]) set(op, part int, nodes []N) {
	if part == 0 {
		e.all[op] = nodes
		return
	}
	if e.parts[op] == nil {
		e.parts[op] = map[int][]N{}
	}
	e.parts[op][part] = nodes
	e.all[op] = append(e.all[op], nodes...)
}

// wait is what an op, or a part of one, waits for by these dependencies.
func (e *endings[N]) wait(deps []int, part int) []N {
	ends := make([][]N, len(e.all))
	for _, j := range deps {
		ends[j] = e.all[j]
		if own, ok := e.parts[j][part]; ok {
			ends[j] = own
		}
	}
	return waitFor(deps, ends)
}
