//go:build !darwin

package main

// systemModel: other systems are asked through their files.
func systemModel() string { return "" }
