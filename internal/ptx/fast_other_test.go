//go:build !amd64

package ptx

func setFast(bool) {}
