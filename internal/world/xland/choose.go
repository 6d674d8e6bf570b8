package xland

import "fmt"

// Choose selects tasks of a benchmark: the first ones for training, and as held-out tasks the next
// ones whose ruleset, objects included, is not among the training tasks.
type Choose struct {
	Learn, Held int

	Learned, HeldOut []ID // the result of From
	Shared           int  // held-out tasks with the same goal and rules as a training task
}

// From selects the tasks and returns the world with them. The rulesets come from file or, if it is
// nil, from w.
func (c *Choose) From(w World, file *File, name string) (World, error) {
	most := maxDrawn
	if file != nil {
		most = file.Len()
	} else if err := w.Check(); err != nil {
		return w, err
	}
	whole, short := map[string]bool{}, map[string]bool{}
	c.Learned, c.HeldOut, c.Shared = nil, nil, 0
	for i := 0; len(c.HeldOut) < c.Held; i++ {
		if i >= most {
			return w, fmt.Errorf("%d tasks to learn from and %d others held out: %s has %d, and no more that differ", c.Learn, c.Held, name, most)
		}
		var r *Ruleset
		var err error
		if file != nil {
			r = file.Ruleset(i)
		} else if r, err = w.Ruleset(ID(i)); err != nil {
			return w, err
		}
		all := string(r.bytes())
		aim := string((&Ruleset{Goal: r.Goal, Rules: r.Rules}).bytes())
		switch {
		case i < c.Learn:
			whole[all], short[aim] = true, true
			c.Learned = append(c.Learned, ID(i))
		case !whole[all]:
			if short[aim] {
				c.Shared++
			}
			c.HeldOut = append(c.HeldOut, ID(i))
		}
	}
	if file != nil {
		w.Tasks = file.Tasks(name, append(append([]ID{}, c.Learned...), c.HeldOut...))
		return w, w.Check()
	}
	return w, nil
}
