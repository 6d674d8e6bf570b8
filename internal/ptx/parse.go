package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Module is a parsed module: its kernels, the functions that they call, and the shared variables
// outside of functions.
type Module struct {
	Target    string
	shared    []variable
	functions map[string]*function
	kernels   []string
}

// Kernels returns the names of the kernels in the order of the text.
func (m *Module) Kernels() []string { return m.kernels }

// Needs returns the least compute capability of the module: 80 for sm_80.
func (m *Module) Needs() int {
	n, _ := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(m.Target, "sm_"), "a"))
	return n
}

// Only reports whether newer GPUs than the module's target cannot run it, as for sm_90a.
func (m *Module) Only() bool { return strings.HasSuffix(m.Target, "a") }

type variable struct {
	name         string
	align, bytes int
	outside      bool // .extern: dynamic shared memory of the launch
}

type function struct {
	name            string
	line            int
	params, returns []variable
	threads         [3]int // .maxntid
	body            []statement
}

// operandKind is the syntactic form of an operand.
type operandKind uint8

const (
	named   operandKind = iota // a register, a variable, a label or a function
	number                     // the bits of an integer or a float
	memory                     // [base+offset], or [base, {coordinates}]
	vector                     // {a, b, ...}
	nothing                    // _
)

type operand struct {
	kind  operandKind
	name  string
	bits  uint64 // of a number; for memory the offset
	float bool   // the number was written as 0f or 0d
	not   bool   // !predicate
	list  []operand
}

// declaration declares registers or a variable in a function's body.
type declaration struct {
	space, kind string
	variable
	count int // registers name0 to name(count-1); 0: one register or variable with that name
}

// statement is a label, a declaration or an instruction.
type statement struct {
	line    int
	label   string
	declare *declaration
	guard   string
	unless  bool // @!guard
	op      string
	args    []operand
}

// Parse parses the text of one module.
func Parse(text []byte) (*Module, error) {
	p := &parser{text: text, line: 1, m: &Module{functions: map[string]*function{}}}
	p.next()
	err := p.module()
	if err != nil {
		return nil, fmt.Errorf("PTX line %d: %w", p.line, err)
	}
	return p.m, nil
}

// scope holds the declarations of a block in braces. Names in nested scopes get the scope's number
// as a suffix, so that all names of a function differ.
type scope struct {
	names  map[string]string
	labels map[string]string
	first  int // index of the scope's first statement
}

type parser struct {
	text   []byte
	at     int
	line   int
	token  string
	m      *Module
	f      *function
	scopes []scope
	serial int
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%' || c == '.'
}

// next reads a token: a word with its dots and double colons, a string, or another character; "" at
// the end.
func (p *parser) next() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '\n':
			p.line++
			p.at++
		case c == ' ' || c == '\t' || c == '\r':
			p.at++
		case c == '/' && p.at+1 < len(p.text) && p.text[p.at+1] == '/':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		case isWord(c):
			from := p.at
			for p.at < len(p.text) && (isWord(p.text[p.at]) || p.text[p.at] == ':' && p.at+2 < len(p.text) && p.text[p.at+1] == ':' && isWord(p.text[p.at+2])) {
				if p.text[p.at] == ':' {
					p.at++
				}
				p.at++
			}
			p.token = string(p.text[from:p.at])
			return
		case c == '"':
			from := p.at
			for p.at++; p.at < len(p.text) && p.text[p.at] != '"'; p.at++ {
			}
			p.at = min(p.at+1, len(p.text))
			p.token = string(p.text[from:p.at])
			return
		default:
			p.token = string(c)
			p.at++
			return
		}
	}
	p.token = ""
}

func (p *parser) take() string {
	t := p.token
	p.next()
	return t
}

func (p *parser) want(token string) error {
	if p.token != token {
		return fmt.Errorf("%q stands where %q must", p.token, token)
	}
	p.next()
	return nil
}

func (p *parser) integer() (int, error) {
	n, err := strconv.ParseInt(p.token, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q stands where a number must", p.token)
	}
	p.next()
	return int(n), nil
}

func (p *parser) module() error {
	outside := false
	for p.token != "" {
		switch p.token {
		case ".version", ".address_size":
			p.next()
			p.next()
		case ".target":
			p.next()
			p.m.Target = p.take()
		case ".visible", ".weak", ".extern":
			outside = p.token == ".extern"
			p.next()
		case ".shared":
			d, err := p.variable(".shared")
			if err != nil {
				return err
			}
			d.outside = outside
			p.m.shared, outside = append(p.m.shared, d.variable), false
			if err := p.want(";"); err != nil {
				return err
			}
		case ".entry", ".func":
			if err := p.function(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is not known outside of a function", p.token)
		}
	}
	return nil
}

var typeBytes = map[string]int{".b8": 1, ".u8": 1, ".s8": 1, ".b16": 2, ".u16": 2, ".s16": 2, ".f16": 2,
	".b32": 4, ".u32": 4, ".s32": 4, ".f32": 4, ".b64": 8, ".u64": 8, ".s64": 8, ".f64": 8}

// variable parses what follows a space's name: alignment, type, name and size.
func (p *parser) variable(space string) (d declaration, err error) {
	d.space = space
	p.next()
	if p.token == ".align" {
		p.next()
		if d.align, err = p.integer(); err != nil {
			return d, err
		}
	}
	d.kind = p.take()
	d.bytes = typeBytes[d.kind]
	if d.bytes == 0 {
		return d, fmt.Errorf("%q is no type of a variable", d.kind)
	}
	d.align = max(d.align, d.bytes)
	d.name = p.take()
	if p.token == "[" {
		p.next()
		n := 0
		if p.token != "]" {
			if n, err = p.integer(); err != nil {
				return d, err
			}
		}
		d.bytes *= n
		return d, p.want("]")
	}
	return d, nil
}

func (p *parser) params() (list []variable, err error) {
	if err := p.want("("); err != nil {
		return nil, err
	}
	for p.token != ")" {
		if p.token != ".param" {
			return nil, fmt.Errorf("%q stands where .param must", p.token)
		}
		d, err := p.variable(".param")
		if err != nil {
			return nil, err
		}
		list = append(list, d.variable)
		if p.token == "," {
			p.next()
		}
	}
	p.next()
	return list, nil
}

func (p *parser) function() (err error) {
	f := &function{line: p.line}
	entry := p.take() == ".entry"
	if p.token == "(" {
		if f.returns, err = p.params(); err != nil {
			return err
		}
	}
	f.name = p.take()
	if f.params, err = p.params(); err != nil {
		return err
	}
	for p.token != "{" && p.token != ";" {
		switch p.token {
		case ".maxntid":
			p.next()
			for i := range f.threads {
				if f.threads[i], err = p.integer(); err != nil {
					return err
				}
				if p.token == "," {
					p.next()
				}
			}
		case ".minnctapersm", ".maxnreg":
			p.next()
			p.next()
		case ".noreturn":
			p.next()
		default:
			return fmt.Errorf("%q is not known between %s and its body", p.token, f.name)
		}
	}
	if p.token == ";" { // a declaration before the body
		p.next()
		return nil
	}
	p.f, p.scopes = f, nil
	if err := p.body(); err != nil {
		return err
	}
	p.m.functions[f.name] = f
	if entry {
		p.m.kernels = append(p.m.kernels, f.name)
	}
	return nil
}

func (p *parser) body() error {
	for {
		switch {
		case p.token == "{":
			p.next()
			p.scopes = append(p.scopes, scope{names: map[string]string{}, labels: map[string]string{}, first: len(p.f.body)})
		case p.token == "}":
			p.next()
			p.leave()
			if len(p.scopes) == 0 {
				return nil
			}
		case p.token == "":
			return fmt.Errorf("%s has no end", p.f.name)
		case p.token == ";":
			p.next()
		case p.token == ".pragma":
			p.next()
			p.next()
		case p.token[0] == '.':
			if err := p.declaration(); err != nil {
				return err
			}
		default:
			if err := p.instruction(); err != nil {
				return err
			}
		}
	}
}

// unique returns a name of the innermost scope that no other scope has.
func (p *parser) unique(name string) string {
	if len(p.scopes) == 1 {
		return name
	}
	p.serial++
	return name + "@" + strconv.Itoa(p.serial)
}

// leave ends a scope. All its labels are known, and branches to them are resolved.
func (p *parser) leave() {
	s := p.scopes[len(p.scopes)-1]
	p.scopes = p.scopes[:len(p.scopes)-1]
	if len(s.labels) == 0 || len(p.scopes) == 0 {
		return
	}
	for i := s.first; i < len(p.f.body); i++ {
		b := &p.f.body[i]
		if l, ok := s.labels[b.label]; ok && b.label != "" {
			b.label = l
		}
		if strings.HasPrefix(b.op, "bra") {
			if l, ok := s.labels[b.args[0].name]; ok {
				b.args[0].name = l
			}
		}
	}
}

func (p *parser) declaration() error {
	s := &p.scopes[len(p.scopes)-1]
	line := p.line
	if p.token != ".reg" {
		space := p.token
		if space != ".local" && space != ".shared" && space != ".param" {
			return fmt.Errorf("%q is not known in a function", space)
		}
		d, err := p.variable(space)
		if err != nil {
			return err
		}
		name := d.name
		d.name = p.unique(name)
		s.names[name] = d.name
		p.f.body = append(p.f.body, statement{line: line, declare: &d})
		return p.want(";")
	}
	p.next()
	kind := p.take()
	for {
		name := p.take()
		d := declaration{space: ".reg", kind: kind}
		if p.token == "<" {
			p.next()
			n, err := p.integer()
			if err != nil {
				return err
			}
			if err := p.want(">"); err != nil {
				return err
			}
			d.count = n
		}
		d.name = name
		if len(p.scopes) > 1 && d.count == 0 {
			d.name = p.unique(name)
			s.names[name] = d.name
		}
		p.f.body = append(p.f.body, statement{line: line, declare: &d})
		if p.token != "," {
			return p.want(";")
		}
		p.next()
	}
}

// resolve returns the unique name of a name in the innermost scope that declares it.
func (p *parser) resolve(name string) string {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if n, ok := p.scopes[i].names[name]; ok {
			return n
		}
	}
	return name
}

func (p *parser) instruction() error {
	s := statement{line: p.line}
	if p.token == "@" {
		p.next()
		if p.token == "!" {
			p.next()
			s.unless = true
		}
		s.guard = p.resolve(p.take())
	}
	s.op = p.take()
	if p.token == ":" {
		p.next()
		top := &p.scopes[len(p.scopes)-1]
		s.label, s.op = s.op, ""
		if len(p.scopes) > 1 {
			top.labels[s.label] = p.unique(s.label)
		}
		p.f.body = append(p.f.body, s)
		return nil
	}
	for p.token != ";" {
		o, err := p.operand()
		if err != nil {
			return fmt.Errorf("%s: %w", s.op, err)
		}
		s.args = append(s.args, o)
		if p.token == "," {
			p.next()
		}
	}
	p.next()
	p.f.body = append(p.f.body, s)
	return nil
}

func (p *parser) operand() (operand, error) {
	switch {
	case p.token == "{" || p.token == "(":
		end := map[string]string{"{": "}", "(": ")"}[p.take()]
		o := operand{kind: vector}
		for p.token != end {
			e, err := p.operand()
			if err != nil {
				return o, err
			}
			o.list = append(o.list, e)
			if p.token == "," {
				p.next()
			}
		}
		p.next()
		return o, nil
	case p.token == "[":
		p.next()
		base, err := p.operand()
		if err != nil {
			return base, err
		}
		o := operand{kind: memory, name: base.name, bits: base.bits}
		for p.token == "+" || p.token == "-" {
			sign := p.take()
			if p.token == "-" {
				p.next()
				sign = "-"
			}
			n, err := p.integer()
			if err != nil {
				return o, err
			}
			if sign == "-" {
				n = -n
			}
			o.bits += uint64(n)
		}
		if p.token == "," {
			p.next()
			c, err := p.operand()
			if err != nil {
				return o, err
			}
			o.list = c.list
		}
		return o, p.want("]")
	case p.token == "!":
		p.next()
		return operand{kind: named, name: p.resolve(p.take()), not: true}, nil
	case p.token == "-":
		p.next()
		o, err := p.operand()
		o.bits = -o.bits
		return o, err
	case p.token == "_":
		p.next()
		return operand{kind: nothing}, nil
	case p.token == "" || !isWord(p.token[0]):
		return operand{}, fmt.Errorf("%q is no operand", p.token)
	case p.token[0] >= '0' && p.token[0] <= '9':
		return p.numeral()
	}
	return operand{kind: named, name: p.resolve(p.take())}, nil
}

func (p *parser) numeral() (operand, error) {
	t := p.take()
	o := operand{kind: number}
	var err error
	switch {
	case len(t) == 10 && (t[:2] == "0f" || t[:2] == "0F"):
		o.float = true
		o.bits, err = strconv.ParseUint(t[2:], 16, 32)
	case len(t) == 18 && (t[:2] == "0d" || t[:2] == "0D"):
		o.float = true
		o.bits, err = strconv.ParseUint(t[2:], 16, 64)
	case strings.Contains(t, "."):
		var v float64
		v, err = strconv.ParseFloat(t, 64)
		o.float, o.bits = true, math.Float64bits(v)
	default:
		o.bits, err = strconv.ParseUint(strings.TrimSuffix(t, "U"), 0, 64)
	}
	if err != nil {
		return o, fmt.Errorf("%q is no number", t)
	}
	return o, nil
}
