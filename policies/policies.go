// Package policies holds the trained routing policies that come with the program:
// NAME.safetensors.zst with weights and settings, and NAME.md, its model card. A policy is added by
// adding the two files; `haul policies pack` and zstd make the first. It stays compressed until it
// is read.
package policies

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

//go:embed *.safetensors.zst *.md
var files embed.FS

const (
	weights = ".safetensors.zst"
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
		if name, found := strings.CutSuffix(e.Name(), weights); found {
			names = append(names, name)
		}
	}
	// by the number of customers at the name's end; of one size plain CVRP comes first
	slices.SortFunc(names, func(a, b string) int {
		x, y := strings.TrimLeft(a, letters), strings.TrimLeft(b, letters)
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y), strings.Compare(a, b))
	})
	return names
}

// Read is a policy's .safetensors file.
func Read(name string) ([]byte, error) {
	names := Names()
	if !slices.Contains(names, name) {
		if len(names) == 0 {
			return nil, fmt.Errorf("no policy %q: this build carries none; --checkpoint takes a run of your own", name)
		}
		return nil, fmt.Errorf("no policy %q: there are %s", name, strings.Join(names, ", "))
	}
	packed, err := files.ReadFile(name + weights)
	if err != nil {
		return nil, err
	}
	if err := intact(name, packed); err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	defer z.Close()
	data, err := z.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return data, nil
}

// Card is a policy's model card, "" where it has none.
func Card(name string) string {
	text, err := files.ReadFile(name + card)
	if err != nil {
		return ""
	}
	return string(text)
}
