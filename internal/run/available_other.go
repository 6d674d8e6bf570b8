//go:build !darwin

package run

import "os"

// systemMemory reads Linux's files; a system without them does not tell.
func systemMemory() (bytes int64, known bool) { return availableIn(os.DirFS("/")) }
