//go:build !amd64

package vec

// fastest returns the operations of this processor.
func fastest() *set { return &plain }
