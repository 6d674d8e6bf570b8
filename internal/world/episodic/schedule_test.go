package episodic

import "testing"

// TestSchedulesHaveTheirBounds: the bound itself where it is named as allowed.
func TestSchedulesHaveTheirBounds(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *Schedule)
		ok     bool
	}{
		"as it is":              {func(s *Schedule) {}, true},
		"no discount":           {func(s *Schedule) { s.Discount = 0 }, true},
		"a discount of 1":       {func(s *Schedule) { s.Discount = 1 }, false},
		"a discount below 0":    {func(s *Schedule) { s.Discount = -0.1 }, false},
		"a rate of 1":           {func(s *Schedule) { s.Rate = 1 }, true},
		"a rate of 0":           {func(s *Schedule) { s.Rate = 0 }, false},
		"no episode":            {func(s *Schedule) { s.Episodes = 0 }, false},
		"one episode":           {func(s *Schedule) { s.Episodes = 1 }, true},
		"a million of them":     {func(s *Schedule) { s.Episodes = 1 << 20 }, true},
		"one more":              {func(s *Schedule) { s.Episodes = 1<<20 + 1 }, false},
		"exploration above 1":   {func(s *Schedule) { s.First = 1.1 }, false},
		"exploration that is 0": {func(s *Schedule) { s.First = 0 }, true},
	} {
		s := Published()
		c.change(&s)
		if err := s.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}
