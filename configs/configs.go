// Package configs holds the settings files Haul ships, embedded in the binary.
//
// default.yaml must name every key there is: the other files, and every user's file, hold only
// what they change and are merged over it.
package configs

import "embed"

// FS has the shipped YAML files at its root.
//
//go:embed *.yaml
var FS embed.FS
