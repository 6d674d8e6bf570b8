package problem

import (
	"bytes"
	"fmt"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	library "haul/problem"
	"haul/problems"
)

func (a *app) newNew() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a problem file to begin from",
		Long: `Writes a folder with NAME.go (the orienteering problem, to be changed), a test, and a go.mod with the package that the file imports:
editors and go test work there without a network. NAME may be a path; its last part is the name of the Go package.`,
		Example: "  haul problem new mine",
		Args:    cli.One("the problem"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.create(args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// created is what haul problem new reports.
type created struct {
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
}

var packageName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

func (a *app) create(dir string, asJSON bool) error {
	name := filepath.Base(dir)
	if !packageName.MatchString(name) || token.IsKeyword(name) || name == "problem" || name == "main" {
		return cli.Usagef("%q is no name of a Go package: use lower-case letters and digits, and neither problem nor main", name)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return cli.Usagef("%s is not empty: name another folder", dir)
	}
	files, err := begin(name)
	if err != nil {
		return err
	}
	report := created{Dir: dir}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := cli.WriteFile(path, func(w io.Writer) error { _, err := w.Write(f.text); return err }); err != nil {
			return err
		}
		report.Files = append(report.Files, f.path)
	}
	if asJSON {
		return a.Emit(report)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s: change it, then haul problem check %s\n", filepath.Join(dir, name+".go"), dir)
	return err
}

// file is a file of a folder that is to be written.
type file struct {
	path string
	text []byte
}

// begin returns the files of a problem to begin from.
func begin(name string) ([]file, error) {
	op, _ := problems.Find("op")
	source := bytes.Replace(op.Source(), []byte("// Package op is"), []byte("// Package "+name+" is"), 1)
	source = bytes.Replace(source, []byte("\npackage op\n"), []byte("\npackage "+name+"\n"), 1)
	files := []file{
		{name + ".go", source},
		{name + "_test.go", fmt.Appendf(nil, testText, name)},
		{"go.mod", fmt.Appendf(nil, "module %s\n\ngo 1.22\n\nrequire haul v0.0.0\n\nreplace haul => ./haul\n", name)},
		{"haul/go.mod", []byte("module haul\n\ngo 1.22\n")},
	}
	for _, part := range []string{"problem.go", "math.go"} {
		text, err := library.Source.ReadFile(part)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"haul/problem/" + part, text})
	}
	return files, nil
}

// testText is a test of the file as an ordinary Go package.
const testText = `package %s

import "testing"

func TestStart(t *testing.T) {
	in, depot, far := Instance{Limit: 2}, Node{}, Node{}
	depot.Depot, far.Depot, far.X = 0, -1, 1.5
	far.Derive(&in, &depot)
	var v Vehicle
	v.Start(&in)
	if v.Fits(&in, &depot, &far) {
		t.Error("a place 1.5 away fits into a tour of length 2")
	}
}
`
