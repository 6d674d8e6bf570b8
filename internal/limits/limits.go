// Package limits is the table of how much an input may ask for: for every dimension in which a file
// or a request can grow, how much of it the command line takes and how much the service takes.
//
// A reader or a check that counts something asks Over with the limit's name. A refusal is one line
// that states the count, the limit and the flag that raises it.
package limits

import (
	"fmt"
	"strconv"
	"strings"
)

// Name identifies a limit: an index into Table.
type Name int

// The limits.
const (
	File Name = iota
	Unpacked
	Depth
	Sheets
	Rows
	Cells
	CellText
	Styles
	Places
	Depots
	Matrix
	Profiles
	Dimensions
	Types
	Numbers
	Windows
	AllWindows
	Breaks
	Reloads
	Groups
	Shipments
	Skills
	AllSkills
	Allowed
	Routes
	Tables
	Fields
	Tensors
	Events
	count
)

// Limit is a row of the table.
type Limit struct {
	Key     string // as in --set KEY=NUMBER, and --limit of haul serve
	Text    string // what is counted, in the plural
	Command int64  // on the command line
	Service int64  // over HTTP
}

// Table has a row per Name.
var Table = [count]Limit{
	File:       {"file", "bytes of a file", 512 << 20, 32 << 20},
	Unpacked:   {"unpacked", "bytes that a spreadsheet unpacks to", 1 << 30, 64 << 20},
	Depth:      {"depth", "brackets of JSON within each other", 16, 16},
	Sheets:     {"sheets", "sheets of a spreadsheet", 256, 64},
	Rows:       {"rows", "rows of the tables of a file", 4 << 20, 100_000},
	Cells:      {"cells", "cells of the tables of a file", 64 << 20, 2 << 20},
	CellText:   {"cell-text", "bytes of the text of a cell", 1 << 20, 32 << 10},
	Styles:     {"styles", "bytes of each description of a spreadsheet (workbook, styles, links)", 64 << 20, 2 << 20},
	Places:     {"places", "places", 4 << 20, 20_000},
	Depots:     {"depots", "depots", 100_000, 1000},
	Matrix:     {"matrix", "entries of the matrices", 1 << 30, 64 << 20},
	Profiles:   {"profiles", "profiles", 1000, 64},
	Dimensions: {"dimensions", "dimensions of load beyond the first", 256, 32},
	Types:      {"types", "vehicle types", 10_000, 500},
	Numbers:    {"numbers", "numbers of vehicles", 1 << 20, 100_000},
	Windows:    {"windows", "time windows of a place or a break", 1000, 100},
	AllWindows: {"all-windows", "time windows of places that have several", 20_000, 4000},
	Breaks:     {"breaks", "breaks of a vehicle type", 50, 8},
	Reloads:    {"reloads", "depots at which a vehicle type reloads", 1000, 50},
	Groups:     {"groups", "groups of customers", 1 << 20, 5000},
	Shipments:  {"shipments", "shipments", 1 << 20, 5000},
	Skills:     {"skills", "skills of a place or a vehicle type", 1000, 100},
	AllSkills:  {"all-skills", "skills", 8 << 20, 100_000},
	Allowed:    {"allowed", "customers that vehicle types may serve, added up", 64 << 20, 500_000},
	Routes:     {"routes", "stops of routes to begin with", 8 << 20, 40_000},
	Tables:     {"tables", "tables of a database", 10_000, 2000},
	Fields:     {"fields", "fields of the rows of a database", 16 << 30, 200_000_000},
	Tensors:    {"tensors", "tensors of a checkpoint", 100_000, 100_000},
	Events:     {"events", "events of a trace, or of the traces of an upload", 200_000_000, 8_000_000},
}

// Set is a value for each limit. A nil Set has the command line's.
type Set struct {
	most    [count]int64
	service bool
}

// ForCommand returns the limits of the command line.
func ForCommand() *Set {
	s := &Set{}
	for i, l := range Table {
		s.most[i] = l.Command
	}
	return s
}

// ForService returns the limits of requests over HTTP.
func ForService() *Set {
	s := &Set{service: true}
	for i, l := range Table {
		s.most[i] = l.Service
	}
	return s
}

// Most returns how much a limit allows.
func (s *Set) Most(n Name) int64 {
	if s == nil {
		return Table[n].Command
	}
	return s.most[n]
}

// Raise sets limits from KEY=NUMBER, as flags give them. The set is changed in place.
func (s *Set) Raise(given []string) error {
	flag := "--set"
	if s.service {
		flag = "--limit"
	}
	for _, text := range given {
		key, number, _ := strings.Cut(text, "=")
		n, ok := named(key)
		if !ok {
			return fmt.Errorf("%s %s: there is no such limit: they are %s", flag, strconv.Quote(text), Keys())
		}
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil || v < 1 || v > 1<<40 {
			return fmt.Errorf("%s %s: expected a whole number from 1 to %d behind the =", flag, strconv.Quote(text), int64(1)<<40)
		}
		if fixed := n.fixed(); fixed != "" && v > Table[n].Command {
			return fmt.Errorf("%s %s: %d is the most: %s", flag, strconv.Quote(text), Table[n].Command, fixed)
		}
		s.most[n] = v
	}
	return nil
}

func named(key string) (Name, bool) {
	for i, l := range Table {
		if l.Key == key {
			return Name(i), true
		}
	}
	return 0, false
}

// fixed says why no flag raises a limit; "": one does.
func (n Name) fixed() string {
	switch n {
	case Depth:
		return "no document needs more"
	case Tensors:
		return "no checkpoint needs more"
	}
	return ""
}

// Known reports whether a limit has that key.
func Known(key string) bool {
	_, ok := named(key)
	return ok
}

// Keys lists the limits for people.
func Keys() string {
	keys := make([]string, count)
	for i, l := range Table {
		keys[i] = l.Key
	}
	return strings.Join(keys, ", ")
}

// Error is an input over a limit.
type Error struct {
	Limit   Name
	Most    int64
	Has     int64 // 0: more than Most, not counted to the end
	Service bool
}

// Error names the limit and its flag.
func (e *Error) Error() string {
	l := &Table[e.Limit]
	has := "more than " + strconv.FormatInt(e.Most, 10)
	if e.Has > 0 {
		has = strconv.FormatInt(e.Has, 10)
	}
	flag := fmt.Sprintf("--set %s=N raises it", l.Key)
	switch fixed := e.Limit.fixed(); {
	case fixed != "":
		flag = fixed
	case e.Service:
		flag = fmt.Sprintf("haul serve --limit %s=N raises it", l.Key)
	}
	return fmt.Sprintf("it has %s %s: the limit %s is %d; %s", has, l.Text, l.Key, e.Most, flag)
}

// Over returns an *Error if n is more than the limit allows, else nil.
func (s *Set) Over(l Name, n int64) error {
	if most := s.Most(l); n > most {
		return &Error{Limit: l, Most: most, Has: n, Service: s != nil && s.service}
	}
	return nil
}

// Beyond returns the *Error of an input that was not counted to its end.
func (s *Set) Beyond(l Name) error {
	return &Error{Limit: l, Most: s.Most(l), Service: s != nil && s.service}
}
