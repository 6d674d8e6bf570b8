// Package schema has the one table of what a routing problem can state: Parts. Haul's own JSON is
// read and written by it; the refusals of methods and formats, the Go and Python models, the
// description of the HTTP API, the page's lists and the tables of docs/formats.md are derived from
// it or compared with it by tests.
//
// The package holds data and imports nothing.
//
// Invariants:
//   - Every field of vrp.Problem and of the types in its lists is named by a part; a test of
//     package vrp compares them.
//   - A part that changes routes has a Group. A method that is not among its Methods, and a format
//     without a word for it, refuse a problem that has it by the name of that group.
package schema

// Object is what a part is a property of.
type Object int

// The objects. A part of a Place is a list of the problem with one entry per place, depots first.
const (
	Problem Object = iota
	Place
	Vehicle
	Break
	Profile
	Dimension
	Group
	Shipment
)

// Type is the form of a value in JSON.
type Type int

// The types. Ints, Numbers and Texts are lists; Spans is a list of Span; a Matrix is a list of
// rows; an Objects is a list of the part's List.
const (
	Int Type = iota
	Number
	Bool
	Text
	Choice // one of the part's Words
	Point  // [x, y]
	Span   // [from, to], or [from] without an end
	Spans
	Ints
	Texts
	Matrix
	Objects
)

// Unit says what a number counts.
type Unit int

// The units.
const (
	NoUnit Unit = iota
	Amount
	Moment
	Time
	Distance
	Money
	Speed
)

// Ref is what the entries of a list of numbers, or a number, refer to.
type Ref int

// The references.
const (
	NoRef Ref = iota
	Customer
	Depot
	ProfileIndex
)

// Methods is a set of methods that may honour a part. A method may still narrow it: exact takes a
// number of vehicles if it is 1.
type Methods int

// The methods.
const (
	Search Methods = 1 << iota
	Policy
	Exact
	Savings

	EveryMethod = Search | Policy | Exact | Savings
	NoProof     = Search | Policy // not the methods that know the capacity alone
)

// Effect is what a part changes in the judgement of given routes.
type Effect int

// The effects.
const (
	Shown  Effect = iota // nothing: people and files read it
	Rule                 // which routes are valid
	Times                // when stops are reached
	Cost                 // what routes cost
	Choose               // which of two valid solutions a search prefers
)

// Format is a file format with words of its own.
type Format int

// The formats that can be written.
const (
	VRPLIB Format = iota
	Solomon
	LiLim
	Cordeau
	Table
	Formats // how many there are
)

// FormatNames are the names of formats, by Format.
var FormatNames = [Formats]string{"vrplib", "solomon", "lilim", "cordeau", "table"}

// Word is how a format states a part.
type Word struct {
	Key     string // section; "" if the format has no word for the part; of tables: Columns has it
	Example string // an example that the format can state; "": the part's own
}

// Sheet is a table of a problem.
type Sheet int

// The sheets. A part that is a table of its own has a column of Own.
const (
	Customers Sheet = iota
	Vehicles
	Shipments
	Settings
	Own
)

// Column is a column of a sheet, or a setting: its name, and what else people call it, with blanks
// between.
type Column struct {
	Sheet Sheet
	Name  string
	Also  string
}

// Part is one thing that a routing problem can state.
type Part struct {
	Name   string   // in sentences
	Group  string   // in refusals, after "it has"; "": every method and format knows it
	Of     Object   // whose property it is
	Key    string   // in JSON
	Fields []string // of the Go type of Of in package vrp; none: accepted and not read
	Type   Type
	List   Object   // of Objects: what the list holds
	Words  []string // of a Choice: the words of its values in order; "": the value has no word
	Each   bool     // a list with an entry per place, in an object other than a Place
	Refs   Ref
	Unit   Unit

	Neutral  []string // JSON of further values that ask for nothing, beside zero and the empty list
	Default  string   // JSON of the value that a missing key stands for, if it is not zero; "none": no limit
	Required bool
	Min, Max float64 // inclusive; Max 0: any number of the type
	Above    bool    // Min itself is excluded
	Bits     int     // of an integer; 0: 32
	Most     int     // length of the list at most; 0: Places

	Columns []Column // of tables: the written one, then further ones for the same part
	Formats [Formats]Word
	Python  string // methods and parameters of Python's Model that state it, with blanks between; "": by its key alone
	Methods Methods
	Effect  Effect
	Routes  string // JSON of routes that show the effect; "": BaseRoutes

	Text    string // one sentence for every document
	Example string // JSON keys laid over Base; null takes a key away
}

// NoMax is the Max of a number from Min on.
const NoMax = 1e300

// Places is the length of a list by place at most, and Words that of any other list.
const Places = 6000

// Base is a problem of one depot and four customers, and BaseRoutes solves it. The parts' examples
// are laid over it.
const (
	Base       = `"coords":[[0,0],[3,4],[6,8],[0,8],[0,4]],"demands":[0,2,1,2,1],"capacity":9`
	BaseRoutes = `[[1,2,3,4]]`
)

// ColumnsOf returns the columns of a sheet, each once.
func ColumnsOf(sheet Sheet) (out []Column) {
	seen := map[string]bool{}
	for i := range Parts {
		for _, c := range Parts[i].Columns {
			if c.Sheet == sheet && !seen[c.Name] {
				seen[c.Name] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// Of returns the parts of an object, in their order.
func Of(o Object) (out []*Part) {
	for i := range Parts {
		if Parts[i].Of == o {
			out = append(out, &Parts[i])
		}
	}
	return out
}

// Top returns the parts that are keys of a problem's JSON, in the order in which they are written.
func Top() (out []*Part) {
	for i := range Parts {
		if Parts[i].Of == Problem || Parts[i].Of == Place {
			out = append(out, &Parts[i])
		}
	}
	return out
}
