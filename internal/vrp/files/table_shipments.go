package files

import (
	"fmt"
	"slices"
	"strings"

	"haul/internal/schema"
)

// Shipments of a table: a row each, whose halves are customers by id, or places of their own
// with coordinates and windows. What a reader could break: a half that is a place of its own is
// named by the shipment's id and whether it is the pickup or the delivery.

// halfWords are what people put before a column of a half.
var halfWords = [2][]string{{"pickup_", "from_", "origin_", "collect_", "source_"}, {"delivery_", "to_", "destination_", "dropoff_", "drop_", "target_"}}

// halfColumn says which half a column describes, and as what.
func halfColumn(head string) (half int, key string, ok bool) {
	full := spelled(head)
	for h, words := range halfWords {
		for _, w := range words {
			if full == strings.TrimSuffix(w, "_") || full == w+"id" || full == w+"customer" {
				return h, "id", true
			}
			if rest, cut := strings.CutPrefix(full, w); cut {
				return h, rest, true
			}
		}
	}
	return 0, "", false
}

func (t *tables) readShipments() error {
	s := t.shipments
	if s == nil {
		return nil
	}
	t.at(s)
	var halves [2]*sheet
	var at [2][]int // columns of the halves
	for h := range halves {
		halves[h] = &sheet{name: s.name, title: s.title, at: s.at, decimal: s.decimal}
	}
	amount, id, skills := -1, -1, -1
	for i, head := range s.head {
		key := columnKey(head)
		half, rest, ok := halfColumn(head)
		switch {
		case ok && tells(columnKey(rest)):
			halves[half].head, at[half] = append(halves[half].head, rest), append(at[half], i)
		case key == "id" || key == "shipment" || key == "name":
			if id < 0 || key == "id" {
				id = i
			}
		case key == "demand" || slices.Contains(amountWords, key):
			if amount >= 0 {
				return s.errorf(s.at, "columns %s and %s both say how much is shipped", quoteShort(s.head[amount]), quoteShort(head))
			}
			amount = i
		case key == "skills":
			skills = i
		default:
			if err := t.validateColumn(s, i, schema.Shipments); err != nil {
				return err
			}
		}
	}
	if amount < 0 {
		return s.errorf(s.at, "no column %q: how much is shipped", "amount")
	}
	for h, word := range []string{"pickup", "delivery"} {
		if halves[h].head == nil {
			return s.errorf(s.at, "no column %q: a customer's id, or %s_x and %s_y, or %s_lat and %s_lon", word, word, word, word, word)
		}
	}
	if t.dims == nil {
		t.dims = []string{""}
	}
	for i, cells := range s.rows {
		name := itoa(i + 1)
		if id >= 0 && strings.TrimSpace(cells[id]) != "" {
			name = printable(strings.TrimSpace(cells[id]))
		}
		for h, word := range []string{"pickup", "delivery"} {
			own := make([]string, len(at[h]))
			for k, c := range at[h] {
				own[k] = cells[c]
			}
			x, err := t.half(halves[h], s.lines[i], own, name+" "+word)
			if err != nil {
				return err
			}
			if x.shipment != "" {
				return s.errorf(s.lines[i], "%s belongs to two shipments", quoteShort(x.id))
			}
			t.at(s)
			if err := t.amount(x, 0, h == 0, strings.TrimSpace(cells[amount])); err != nil {
				return s.errorf(s.lines[i], "amount %s of %s %v", quoteShort(cells[amount]), quoteShort(name), err)
			}
			if skills >= 0 && strings.TrimSpace(cells[skills]) != "" {
				if x.skills, err = t.needs(strings.TrimSpace(cells[skills])); err != nil {
					return s.errorf(s.lines[i], "skills %s of %s %v", quoteShort(cells[skills]), quoteShort(name), err)
				}
			}
			x.shipment = name
		}
	}
	return nil
}

// half is the place of a shipment's half: a customer that is there already, or one of its own.
func (t *tables) half(s *sheet, line int, cells []string, called string) (*place, error) {
	if i := slices.Index(s.head, "id"); i >= 0 {
		id := printable(strings.TrimSpace(cells[i]))
		at, ok := t.byID[id]
		switch {
		case len(s.head) > 1:
			return nil, s.errorf(line, "%s: a half is a customer's id, or a place of its own, not both", quoteShort(called))
		case !ok || at < t.count:
			return nil, s.errorf(line, "%s: %s is no customer", quoteShort(called), quoteShort(id))
		}
		return &t.places[at], nil
	}
	keys, units, at, err := t.placeKeys(s)
	if err != nil {
		return nil, err
	}
	x, y, err := t.coordinates(s, at)
	if err != nil {
		return nil, err
	}
	s.lines = []int{line}
	one, err := t.readPlace(s, 0, cells, keys, units, at, x, y, true)
	if err != nil {
		return nil, err
	}
	if _, twice := t.byID[called]; twice {
		return nil, fmt.Errorf("%s:%d: id %s is given twice", s.name, line, quoteShort(called))
	}
	one.id = called
	t.byID[called] = len(t.places)
	t.places = append(t.places, *one)
	return &t.places[len(t.places)-1], nil
}
