package testset

import (
	"errors"
	"fmt"
	"io"

	"haul/internal/pickle"
	"haul/internal/vrp"
)

// readPickle reads Kool's .pkl: a list of (depot, customers, demands, capacity), the same with
// MVMoE's further fields (mvmoe.go), or a dictionary of arrays with the names of an .npz.
func readPickle(data []byte) (*Set, error) {
	v, err := pickle.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("not a pickle that can be read: %w", err)
	}
	if d, ok := v.(*pickle.Dict); ok {
		return readDict(d, pickle.NumPy)
	}
	list, ok := pickle.Items(v)
	if !ok {
		return nil, errors.New("it holds no list of instances")
	}
	all, left := make([]raw, len(list)), maxNumbers
	for i, v := range list {
		if err := all[i].read(v, &left); err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
	}
	problems, err := build(all)
	return &Set{Problems: problems}, err
}

// readDict reads arrays by name; array turns a value into numbers, or says that it is none.
func readDict(d *pickle.Dict, array func(any) (pickle.Array, bool, error)) (*Set, error) {
	for _, key := range d.Keys {
		if name, ok := key.(string); ok {
			if err := checkName(name); err != nil {
				return nil, err
			}
		}
	}
	all, left := arrays{}, maxNumbers
	for _, names := range [][]string{depotNames, locNames, demandNames, capacityNames, referenceNames} {
		for _, name := range names {
			v, ok := d.Get(name)
			if !ok {
				continue
			}
			a, ok, err := array(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if x, isNumber := pickle.Number(v); !ok && isNumber {
				a, ok = pickle.Array{Data: []float64{x}}, true
			}
			if !ok {
				return nil, fmt.Errorf("%s is no array", name)
			}
			if left -= len(a.Data); left < 0 {
				return nil, fmt.Errorf("more than %d numbers", maxNumbers)
			}
			all[name] = a
		}
	}
	return all.set()
}

// read takes one instance of Kool's: depot [2], customers [n][2], demands [n], capacity. Behind
// them may be three numbers that say how it was drawn, or what limits MVMoE's routes.
func (r *raw) read(v any, left *int) error {
	parts, ok := pickle.Items(v)
	if !ok || len(parts) < 4 {
		return errors.New("expected a depot, customers, demands and a capacity")
	}
	depot, err := numbers(parts[0], left)
	if err != nil || len(depot) != 2 {
		return errors.New("its depot is not two numbers")
	}
	r.depot = [2]float64(depot)
	if r.locs, err = numbers(parts[1], left); err != nil {
		return fmt.Errorf("its customers: %w", err)
	}
	if r.demand, err = numbers(parts[2], left); err != nil {
		return fmt.Errorf("its demands: %w", err)
	}
	if r.capacity, ok = pickle.Number(parts[3]); !ok {
		return errors.New("its capacity is no number")
	}
	return r.limited.read(parts[4:], left)
}

// numbers flattens a list of numbers, a list of lists of numbers, or an array. What is shared is
// counted as often as it is named.
func numbers(v any, left *int) ([]float64, error) {
	if a, ok, err := pickle.NumPy(v); ok {
		if *left -= len(a.Data); *left < 0 {
			return nil, fmt.Errorf("more than %d numbers", maxNumbers)
		}
		return a.Data, err
	}
	items, ok := pickle.Items(v)
	if !ok {
		return nil, errors.New("no list of numbers")
	}
	count := 0
	for _, item := range items {
		if list, ok := pickle.Items(item); ok {
			count += len(list)
		} else {
			count++
		}
	}
	if *left -= count; *left < 0 {
		return nil, fmt.Errorf("more than %d numbers", maxNumbers)
	}
	out := make([]float64, 0, count)
	for _, item := range items {
		inner, ok := pickle.Items(item)
		if !ok {
			inner = []any{item}
		}
		for _, v := range inner {
			x, ok := pickle.Number(v)
			if !ok {
				return nil, errors.New("no list of numbers")
			}
			out = append(out, x)
		}
	}
	return out, nil
}

// writePickle writes instances as Kool's code reads them.
func writePickle(w io.Writer, problems []*vrp.Problem) error {
	list := make([]any, len(problems))
	for i, p := range problems {
		locs, demand := make([]any, p.N()), make([]any, p.N())
		for j := range locs {
			locs[j], demand[j] = []any{p.X[j+1], p.Y[j+1]}, int64(p.Demand[j+1])
		}
		list[i] = pickle.Tuple{[]any{p.X[0], p.Y[0]}, locs, demand, float64(p.Capacity)}
	}
	return pickle.Encode(w, list)
}
