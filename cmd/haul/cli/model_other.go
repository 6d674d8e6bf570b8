//go:build !darwin

package cli

// systemModel: other systems are asked through their files.
func systemModel() string { return "" }
