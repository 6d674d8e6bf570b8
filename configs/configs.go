// Package configs holds the settings files Haul ships, embedded in the binary.
//
// default.yaml, ad_default.yaml and ppo_default.yaml must each name every key of their recipe: the
// other files, and every user's file, hold only what they change and are merged over one of them. A
// file here includes none but its neighbours.
package configs

import "embed"

// FS has the shipped YAML files at its root.
//
//go:embed *.yaml
var FS embed.FS
