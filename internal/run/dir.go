package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"haul/internal/config"
	"haul/internal/report"
)

// Dir is a run folder, locked against other runs until Close. The lock is the kernel's (flock) on a
// file that is never removed: it ends with the process, so that a crash leaves no stale lock.
type Dir struct {
	path string
	lock *os.File
	made bool // this process created the folder
}

// The files of a run folder.
const (
	LastName   = "last.safetensors"
	BestName   = "best.safetensors"
	ConfigName = "config.yaml"
	ResultName = "result.json"
	lockName   = ".lock"
	tablesName = "csv"
	tempSuffix = ".tmp"
)

// OpenDir opens a run folder. Without flags the folder must not exist; with resume it must hold a
// run; with force it may hold anything. The old files of a forced folder stay until the first save
// of the new run (see cleared).
func OpenDir(path string, resume, force bool) (*Dir, error) {
	info, err := os.Stat(path)
	exists := err == nil
	switch {
	case exists && !info.IsDir():
		return nil, fmt.Errorf("%s is a file, and a run needs a folder: name another", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("run folder %s: %w", path, bare(err))
	case resume && !exists:
		return nil, fmt.Errorf("run folder %s does not exist: there is nothing to resume", path)
	case exists && !resume && !force:
		if _, err := os.Stat(filepath.Join(path, LastName)); err != nil {
			if inUse(path) { // another process is about to begin its run
				return nil, fmt.Errorf("run folder %s is in use by another run", path)
			}
			return nil, fmt.Errorf("folder %s exists and holds no run: start one there with --force, or name another folder", path)
		}
		return nil, fmt.Errorf("run folder %s exists: continue it with --resume %s, or overwrite it with --force", path, report.ShellWord(path))
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("run folder %s: %w", path, bare(err))
	}
	d, err := lockDir(path, !exists)
	if err != nil {
		return nil, err
	}
	d.sweep()
	return d, nil
}

// sweep removes temporary files of a process that was killed. The caller holds the lock, so that no
// other process is writing.
func (d *Dir) sweep() {
	for _, dir := range []string{d.path, d.File(tablesName)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), tempSuffix) && e.Type().IsRegular() {
				_ = os.Remove(filepath.Join(dir, e.Name())) // a temporary file that stays is harmless
			}
		}
	}
}

// cleared removes the remaining files of an overwritten run, of any recipe, after the new run has
// replaced its last checkpoint. If the process is killed before, the resumed run calls cleared: a
// checkpoint before the first update shows that the run has no other files yet.
func (d *Dir) cleared() error {
	stale := []string{BestName, ResultName}
	if entries, err := os.ReadDir(d.path); err == nil {
		for _, e := range entries {
			if report.IsEvents(e.Name()) {
				stale = append(stale, e.Name())
			}
		}
	}
	if entries, err := os.ReadDir(d.File(tablesName)); err == nil {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".csv") {
				stale = append(stale, filepath.Join(tablesName, e.Name()))
			}
		}
	}
	for _, name := range stale {
		if err := os.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("run folder %s: remove the old %s: %w", d.path, name, bare(err))
		}
	}
	return nil
}

// NewDir creates and opens the first free folder of root/name-001, root/name-002, ...
func NewDir(root, name string) (*Dir, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("run folder %s: %w", root, bare(err))
	}
	for i := 1; ; i++ {
		path := filepath.Join(root, fmt.Sprintf("%s-%03d", name, i))
		switch err := os.Mkdir(path, 0o755); {
		case err == nil:
			return lockDir(path, true)
		case !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("run folder %s: %w", path, bare(err))
		}
	}
}

// inUse reports whether a process holds the folder's lock.
func inUse(path string) bool {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close() // releases the lock if it was free
	taken, _ := lockFile(f)
	return taken
}

func lockDir(path string, made bool) (*Dir, error) {
	f, err := openLock(filepath.Join(path, lockName))
	if err != nil {
		unmake(path, made)
		return nil, fmt.Errorf("run folder %s: %w", path, bare(err))
	}
	switch taken, err := takeLock(f); {
	case taken:
		return nil, errors.Join(fmt.Errorf("run folder %s is in use by another run", path), f.Close())
	case err != nil:
		err = errors.Join(fmt.Errorf("run folder %s: lock: %w", path, err), f.Close())
		unmake(path, made)
		return nil, err
	}
	return &Dir{path: path, lock: f, made: made}, nil
}

// Hold locks a folder as a run does, until the result is closed.
func Hold(folder string) (io.Closer, error) {
	f, err := openLock(filepath.Join(folder, lockName))
	if err != nil {
		return nil, bare(err)
	}
	taken, err := takeLock(f)
	if taken {
		err = errors.New("another process uses it")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// The functions that lock a folder; tests replace them.
var (
	openLock = func(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644) }
	takeLock = lockFile
)

// unmake removes a folder that was created for a run but could not be locked, so that its name is
// free for another attempt.
func unmake(path string, made bool) {
	if made {
		_ = os.Remove(filepath.Join(path, lockName))
		_ = os.Remove(path) // fails if the folder is not empty
	}
}

// JoinDir returns a folder that another process has locked, for ranks that write nothing.
func JoinDir(path string) *Dir { return &Dir{path: path} }

// Path returns the path of the folder.
func (d *Dir) Path() string { return d.path }

// File returns the path of a file in the folder.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// Last returns the path of the checkpoint that a resumed run starts from.
func (d *Dir) Last() string { return d.File(LastName) }

// Best returns the path of the checkpoint with the lowest validation cost.
func (d *Dir) Best() string { return d.File(BestName) }

// Close releases the lock. If this process created the folder and wrote no checkpoint, it removes
// the folder, so that the name is free again; a folder with other files stays.
func (d *Dir) Close() error {
	if _, err := os.Stat(d.Last()); d.made && errors.Is(err, fs.ErrNotExist) {
		d.made = false
		for _, name := range []string{ConfigName, ConfigName + ".tmp", LastName + ".tmp", lockName} {
			_ = os.Remove(d.File(name))
		}
		_ = os.Remove(d.path)
	}
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

// bare returns the cause of a path error without the path.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// WriteAtomic replaces a file completely or not at all. It writes a temporary file in the same
// folder, syncs it and renames it. After a failed write the old file is unchanged and no temporary
// file is left. Only one process may write a path at a time.
func WriteAtomic(path string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, bare(err))
		}
	}()
	temp := path + tempSuffix
	f, err := durable.create(temp)
	if err != nil {
		return err
	}
	err = write(durable.writer(f))
	if err == nil {
		err = durable.sync(f)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = durable.rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return durable.folder(filepath.Dir(path))
}

// Remove deletes a file. A file that does not exist is no error.
func Remove(path string) error {
	if err := durable.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// durable holds the calls that bring content and names to the disk. Tests record them, replay every
// state that a power failure could leave, and make them fail (FailDisk).
var durable = disk

var disk = struct {
	create func(path string) (*os.File, error)
	writer func(f *os.File) io.Writer
	sync   func(*os.File) error
	rename func(from, to string) error
	folder func(path string) error
	remove func(path string) error
}{
	func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	},
	func(f *os.File) io.Writer { return f }, (*os.File).Sync, os.Rename, syncDir, os.Remove,
}

// FailDisk makes disk operations fail, for tests of packages that use WriteAtomic and Remove. op is
// called before each operation with its name (create, write, sync, rename, folder, remove) and the
// path; an error that it returns becomes the operation's. A write that fails with io.ErrShortWrite
// writes half of the bytes. restore undoes FailDisk.
func FailDisk(op func(call, path string) error) (restore func()) {
	was := durable
	durable.create = func(path string) (*os.File, error) {
		if err := op("create", path); err != nil {
			return nil, err
		}
		return was.create(path)
	}
	durable.writer = func(f *os.File) io.Writer { return &failing{was.writer(f), f.Name(), op} }
	durable.sync = func(f *os.File) error { return errors.Join(op("sync", f.Name()), was.sync(f)) }
	durable.rename = func(from, to string) error {
		if err := op("rename", to); err != nil {
			return err
		}
		return was.rename(from, to)
	}
	durable.folder = func(path string) error { return errors.Join(op("folder", path), was.folder(path)) }
	durable.remove = func(path string) error {
		if err := op("remove", path); err != nil {
			return err
		}
		return was.remove(path)
	}
	return func() { durable = was }
}

type failing struct {
	io.Writer
	path string
	op   func(call, path string) error
}

func (f *failing) Write(b []byte) (int, error) {
	err := f.op("write", f.path)
	if err == nil {
		return f.Writer.Write(b)
	}
	n := 0
	if errors.Is(err, io.ErrShortWrite) {
		n, _ = f.Writer.Write(b[:len(b)/2])
	}
	return n, err
}

// writeConfig writes the settings of the run into the folder.
func (d *Dir) writeConfig(c config.Settings) error {
	yaml, err := c.YAML()
	if err != nil {
		return err
	}
	return WriteAtomic(d.File(ConfigName), func(w io.Writer) error { _, err := w.Write(yaml); return err })
}
