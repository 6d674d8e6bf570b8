package vrptest

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"haul/internal/vrp"
)

// TestDraw checks that drawn problems pass Check, and that at least 5 % of them set each field.
func TestDraw(t *testing.T) {
	const drawn = 2000
	r, set := rand.New(rand.NewPCG(1, 1)), map[string]int{}
	count := func(object string, v reflect.Value) {
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				set[object+"."+v.Type().Field(i).Name]++
			}
		}
	}
	neutral := reflect.ValueOf(vrp.NewVehicleType())
	for range drawn {
		p := Draw(r)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		count("Problem", reflect.ValueOf(*p))
		for i := range neutral.NumField() {
			for k := range p.Fleet {
				if !reflect.DeepEqual(reflect.ValueOf(p.Fleet[k]).Field(i).Interface(), neutral.Field(i).Interface()) {
					set["VehicleType."+neutral.Type().Field(i).Name]++
					break
				}
			}
		}
	}
	for object, of := range map[string]reflect.Type{"Problem": reflect.TypeFor[vrp.Problem](), "VehicleType": reflect.TypeFor[vrp.VehicleType]()} {
		for i := range of.NumField() {
			name := object + "." + of.Field(i).Name
			if name == "Problem.Comment" || name == "Problem.Notes" { // which Haul's JSON does not carry
				continue
			}
			if set[name] < drawn/20 {
				t.Errorf("%s is set in %d of %d problems", name, set[name], drawn)
			}
		}
	}
}
