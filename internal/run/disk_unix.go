//go:build unix

package run

import "golang.org/x/sys/unix"

// freeDisk returns the bytes that can still be written to the disk of a folder.
func freeDisk(dir string) (int64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return Product(int64(s.Bavail), int64(s.Bsize)), true
}
