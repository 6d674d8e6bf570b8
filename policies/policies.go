// Package policies holds the trained routing policies that come with the program: NAME.safetensors
// with weights and settings, and NAME.md, its model card. A policy is added by adding the two
// files; `haul policies pack` makes the first.
package policies

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed *.safetensors *.md
var files embed.FS

const (
	weights = ".safetensors"
	card    = ".md"
	letters = "abcdefghijklmnopqrstuvwxyz"
)

// Names lists the policies, the smallest problems first.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var names []string
	for _, e := range entries {
		if path.Ext(e.Name()) == weights {
			names = append(names, strings.TrimSuffix(e.Name(), weights))
		}
	}
	// by the number of customers at the name's end; of one size plain CVRP comes first
	slices.SortFunc(names, func(a, b string) int {
		x, y := strings.TrimLeft(a, letters), strings.TrimLeft(b, letters)
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y), strings.Compare(a, b))
	})
	return names
}

// Read is a policy's file.
func Read(name string) ([]byte, error) {
	names := Names()
	if !slices.Contains(names, name) {
		if len(names) == 0 {
			return nil, fmt.Errorf("no policy %q: this build carries none; --checkpoint takes a run of your own", name)
		}
		return nil, fmt.Errorf("no policy %q: there are %s", name, strings.Join(names, ", "))
	}
	return files.ReadFile(name + weights)
}

// Card is a policy's model card, "" where it has none.
func Card(name string) string {
	text, err := files.ReadFile(name + card)
	if err != nil {
		return ""
	}
	return string(text)
}
