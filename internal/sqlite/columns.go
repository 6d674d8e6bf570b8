package sqlite

import (
	"slices"
	"strings"
)

// columns takes the names of the stored columns out of a table's CREATE TABLE, and the one that
// stands for the row's number (INTEGER PRIMARY KEY), or -1. The text is what SQLite accepted once;
// of anything else, what can be told of it is told.
func columns(sql string) (names []string, rowID int) {
	rowID = -1
	tokens := tokenize(sql)
	open := slices.Index(tokens, token{text: "("})
	if open < 0 {
		return nil, rowID
	}
	var integers []bool // by column: declared as INTEGER, to the letter
	for _, d := range definitions(tokens[open+1:]) {
		switch first := d[0]; {
		case first.is("CONSTRAINT"), first.is("PRIMARY"), first.is("UNIQUE"), first.is("CHECK"), first.is("FOREIGN"):
			key := slices.IndexFunc(d, func(t token) bool { return t.is("KEY") })
			if key > 0 && d[key-1].is("PRIMARY") && len(d) > key+3 && (d[key+3] == token{text: ")"}) {
				if at := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, d[key+2].text) }); at >= 0 && integers[at] {
					rowID = at
				}
			}
		case computed(d):
		default:
			isInteger := len(d) > 1 && d[1].is("INTEGER") && (len(d) == 2 || d[2].startsConstraint())
			if isInteger && slices.ContainsFunc(d, func(t token) bool { return t.is("PRIMARY") }) {
				rowID = len(names)
			}
			names, integers = append(names, first.text), append(integers, isInteger)
		}
	}
	return names, rowID
}

// computed tells a column that is worked out when it is read and not stored: AS (...) without
// STORED.
func computed(d []token) bool {
	depth, as := 0, false
	for _, t := range d {
		switch {
		case t == token{text: "("}:
			depth++
		case t == token{text: ")"}:
			depth--
		case depth > 0:
		case t.is("AS"):
			as = true
		case t.is("STORED"):
			return false
		}
	}
	return as
}

// definitions splits what the parentheses of CREATE TABLE hold at its commas.
func definitions(tokens []token) (out [][]token) {
	depth, from := 0, 0
	end := func(i int) {
		if i > from {
			out = append(out, tokens[from:i])
		}
		from = i + 1
	}
	for i, t := range tokens {
		switch t {
		case token{text: "("}:
			depth++
		case token{text: ")"}:
			if depth == 0 {
				end(i)
				return out
			}
			depth--
		case token{text: ","}:
			if depth == 0 {
				end(i)
			}
		}
	}
	return out
}

// token is a word or a sign of SQL; a quoted one is no keyword and no sign.
type token struct {
	text   string
	quoted bool
}

func (t token) is(keyword string) bool { return !t.quoted && strings.EqualFold(t.text, keyword) }

func (t token) startsConstraint() bool {
	return slices.ContainsFunc([]string{"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS"}, t.is)
}

func tokenize(s string) (out []token) {
	for s != "" {
		n := 1
		switch c := s[0]; {
		case c == ' ' || c >= '\t' && c <= '\r':
		case strings.HasPrefix(s, "--"):
			n = until(s, "\n", 2)
		case strings.HasPrefix(s, "/*"):
			n = until(s, "*/", 2)
		case c == '"' || c == '`' || c == '\'' || c == '[':
			var t token
			t, n = quoted(s)
			out = append(out, t)
		case word(c):
			for n < len(s) && word(s[n]) {
				n++
			}
			out = append(out, token{text: s[:n]})
		default:
			out = append(out, token{text: s[:1]})
		}
		s = s[n:]
	}
	return out
}

func word(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// until is the length up to and with an end that is searched from an offset on.
func until(s, end string, from int) int {
	if i := strings.Index(s[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(s)
}

// quoted reads a quoted name, in which the closing quote is doubled to stand for itself.
func quoted(s string) (t token, n int) {
	t.quoted = true
	if s[0] == '[' {
		n = until(s, "]", 1)
		t.text = strings.TrimSuffix(s[1:n], "]")
		return t, n
	}
	quote := s[:1]
	var b strings.Builder
	for n = 1; n < len(s); n++ {
		if s[n] != quote[0] {
			b.WriteByte(s[n])
			continue
		}
		if n++; n == len(s) || s[n] != quote[0] {
			break
		}
		b.WriteByte(quote[0])
	}
	t.text = b.String()
	return t, n
}
