//go:build !darwin

package run

import "os"

// systemMemory reads Linux's files; on a system without them the available memory is unknown.
func systemMemory() (bytes int64, known bool) { return availableIn(os.DirFS("/")) }
