package run

import "os"

// RecordDisk calls a function before each operation on the disk, until restore is called.
func RecordDisk(synced func(path string), renamed func(from, to string), folder func(path string)) (restore func()) {
	was := durable
	durable.sync = func(f *os.File) error { synced(f.Name()); return was.sync(f) }
	durable.rename = func(from, to string) error { renamed(from, to); return was.rename(from, to) }
	durable.folder = func(path string) error { folder(path); return was.folder(path) }
	return func() { durable = was }
}
