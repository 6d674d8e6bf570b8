package parse

import (
	"go/scanner"
	"go/types"
	"strings"
)

// scannerText returns the parser's errors, a line each, at most as many as a list keeps.
func scannerText(err error) string {
	list, ok := err.(scanner.ErrorList)
	if !ok {
		return err.Error()
	}
	lines := make([]string, 0, len(list))
	for _, e := range list[:min(len(list), most)] {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// typeError is a mistake that go/types found, with a remedy for common ones.
func typeError(f *File, err error) *Error {
	e, ok := err.(types.Error)
	if !ok {
		return &Error{Text: err.Error()}
	}
	out := &Error{Pos: f.Fset.Position(e.Pos), Text: e.Msg}
	switch {
	case strings.Contains(e.Msg, "division by zero"):
		out.Remedy = "divide by a constant other than 0"
	case strings.Contains(e.Msg, "undefined: math"):
		out.Remedy = "use problem.Sqrt, problem.Abs, min and max"
	case strings.Contains(e.Msg, "problem.") && strings.Contains(e.Msg, "undefined"):
		out.Remedy = "docs/rules.md lists what the package problem has"
	case strings.Contains(e.Msg, "mismatched types") && strings.Contains(e.Msg, "int"):
		out.Remedy = "convert by float32(x) or int32(x)"
	}
	return out
}
