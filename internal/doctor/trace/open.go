package trace

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"haul/internal/limits"
	"haul/internal/sqlite"
)

// The first bytes of a file determine its format, because files are renamed and archives hold
// several. Compression is removed layer by layer (zstd, gzip, bzip2), archives are expanded (zip,
// tar), and the format's reader reads the rest. The error for a file without a reader gives
// advice.

// ReadFile reads the only trace of a file.
func ReadFile(path string) (*Trace, error) {
	var found *Trace
	err := Load(context.Background(), path, func(name string, t *Trace) error {
		if found != nil {
			return fmt.Errorf("%s: more than one trace in it", path)
		}
		found = t
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("%s: no trace in it", path)
	}
	return found, err
}

// Stdin is the path of standard input.
const Stdin = "-"

// Load reads every trace of a file and calls each with its name. It stops when ctx is cancelled.
func Load(ctx context.Context, path string, each func(name string, t *Trace) error) error {
	return LoadWith(ctx, path, nil, nil, each)
}

// LoadWith loads like Load and reports the number of bytes of the file read so far, and the size if
// it is known. The file must be within the limits; nil stands for the command line's limits.
func LoadWith(ctx context.Context, path string, most *limits.Set, progress func(done, size int64), each func(name string, t *Trace) error) error {
	var r io.Reader = os.Stdin
	name := "standard input"
	size := int64(0)
	if path != Stdin {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			if info.IsDir() {
				return fmt.Errorf("%s is a folder", path)
			}
			size = info.Size()
		}
		r, name = f, path
	}
	l := &loading{ctx: ctx, each: each, progress: progress, file: path != Stdin, left: NewBudget(math.MaxInt64, most)}
	return l.read(name, &stoppable{ctx: ctx, r: r, size: size, progress: progress}, 0)
}

// LoadReader is Load for what comes from elsewhere than a file: the name is looked at and told,
// never opened. It may take what is left, which is less by as much afterwards.
func LoadReader(ctx context.Context, name string, r io.Reader, left *Budget, each func(name string, t *Trace) error) error {
	l := &loading{ctx: ctx, each: each, left: left}
	return l.read(name, &stoppable{ctx: ctx, r: r}, 0)
}

// stoppable ends a reading when the context does.
type stoppable struct {
	ctx        context.Context
	r          io.Reader
	done, size int64
	progress   func(done, size int64)
}

func (s *stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(b)
	if s.done += int64(n); s.progress != nil {
		s.progress(s.done, s.size)
	}
	return n, err
}

type loading struct {
	ctx      context.Context
	each     func(name string, t *Trace) error
	progress func(done, size int64)
	got      int
	file     bool // names are paths
	left     *Budget
}

// maxLayers limits nested compression.
const maxLayers = 4

func (l *loading) read(name string, r io.Reader, layer int) error {
	fail := func(err error) error {
		if ctx := l.ctx.Err(); ctx != nil {
			return ctx
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	if layer > maxLayers {
		return fail(errors.New("packed more than four times over"))
	}
	b := bufio.NewReaderSize(&metered{r, l.left}, 1<<16)
	head, err := b.Peek(512)
	if len(head) == 0 {
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fail(errors.New("the packed file is cut off before its first event: copy it again"))
		case err != nil && err != io.EOF:
			return fail(err)
		}
		return fail(errors.New("the file is empty"))
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return fail(err)
		}
		defer z.Close()
		return l.read(name, z, layer+1)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return l.gzip(name, b, layer)
	case len(head) > 3 && bytes.HasPrefix(head, []byte("BZh")) && head[3] >= '1' && head[3] <= '9':
		return l.read(name, bzip2.NewReader(b), layer+1)
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		z, err := xz.NewReader(b)
		if err != nil {
			return fail(errors.New("the xz header is damaged or cut off: copy it again"))
		}
		return l.read(name, z, layer+1)
	case bytes.HasPrefix(head, []byte("7z\xbc\xaf\x27\x1c")):
		return fail(errors.New("packed as 7z, which is not read here: unpack it, or pack it as .gz or .zst"))
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return l.zip(name, b, layer)
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return l.tar(name, b, layer)
	}
	t, err := l.readKind(name, layer > 0 || !l.file, head, b)
	if err != nil {
		return fail(err)
	}
	l.got++
	return l.each(name, t)
}

// gzip checks the contents of the compression. A trace is passed to Read compressed, because Read's
// errors describe damage to it.
func (l *loading) gzip(name string, b *bufio.Reader, layer int) error {
	head, _ := b.Peek(1 << 16)
	inner := make([]byte, 512)
	n := 0
	if z, err := gzip.NewReader(bytes.NewReader(head)); err == nil {
		n, _ = io.ReadFull(z, inner)
	}
	inner = inner[:n]
	if start := bytes.TrimLeft(inner, " \t\r\n\ufeff"); n == 0 || len(start) > 0 && (start[0] == '{' || start[0] == '[') && !isTar(inner) {
		t, err := readWithin(b, l.left)
		if err != nil {
			if ctx := l.ctx.Err(); ctx != nil {
				return ctx
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		l.got++
		return l.each(name, t)
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return fmt.Errorf("%s: the gzip header is damaged or cut off: copy or record it again", name)
	}
	return l.read(name, z, layer+1)
}

func isTar(head []byte) bool { return len(head) > 262 && string(head[257:262]) == "ustar" }

// IsTrace reports whether a file of a folder or an archive may be a trace, by its name.
func IsTrace(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	if strings.HasPrefix(base, ".") {
		return false
	}
	for _, end := range []string{".gz", ".zst", ".bz2", ".xz", ".zip", ".tar", ".tgz"} {
		base = strings.TrimSuffix(base, end)
	}
	return strings.HasSuffix(base, ".json") || strings.HasSuffix(base, ".xplane.pb") || strings.HasSuffix(base, ".sqlite") || strings.HasSuffix(base, ".trace") || strings.HasSuffix(base, ".pickle")
}

func (l *loading) zip(name string, b *bufio.Reader, layer int) error {
	data, err := io.ReadAll(b)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("%s: the zip file is damaged or cut off: copy it again", name)
	}
	before := l.got
	for _, f := range z.File {
		if f.FileInfo().IsDir() || !IsTrace(f.Name) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s in %s: %w", f.Name, name, err)
		}
		err = l.read(name+":"+f.Name, &stoppable{ctx: l.ctx, r: r}, layer+1)
		r.Close()
		if err != nil {
			return err
		}
	}
	if l.got == before {
		return fmt.Errorf("%s: no trace in this archive (files named .json, .xplane.pb, .sqlite or .pickle are read)", name)
	}
	return nil
}

func (l *loading) tar(name string, b *bufio.Reader, layer int) error {
	before := l.got
	z := tar.NewReader(b)
	for {
		h, err := z.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if ctx := l.ctx.Err(); ctx != nil {
				return ctx
			}
			return fmt.Errorf("%s: the tar file is damaged or cut off: copy it again", name)
		}
		if h.Typeflag != tar.TypeReg || !IsTrace(h.Name) {
			continue
		}
		if err := l.read(name+":"+h.Name, z, layer+1); err != nil {
			return err
		}
	}
	if l.got == before {
		return fmt.Errorf("%s: no trace in this archive (files named .json, .xplane.pb, .sqlite or .pickle are read)", name)
	}
	return nil
}

// Expand replaces folders by the traces in them, in the order of their names.
func Expand(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if p == Stdin || err != nil || !info.IsDir() {
			out = append(out, p) // Load returns the error
			continue
		}
		var found []string
		err = filepath.WalkDir(p, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && IsTrace(path) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no trace in this folder (files named .json, .json.gz, .xplane.pb, .sqlite or .pickle are read)", p)
		}
		slices.SortFunc(found, natural)
		out = append(out, found...)
	}
	return out, nil
}

// natural compares names with numbers in numeric order: rank2 before rank10.
func natural(x, y string) int {
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx > 0 && dy > 0 {
			nx, ny := strings.TrimLeft(x[:dx], "0"), strings.TrimLeft(y[:dy], "0")
			if c := len(nx) - len(ny); c != 0 {
				return c
			}
			if c := strings.Compare(nx, ny); c != 0 {
				return c
			}
			x, y = x[dx:], y[dy:]
			continue
		}
		if x[0] != y[0] {
			return int(x[0]) - int(y[0])
		}
		x, y = x[1:], y[1:]
	}
	return len(x) - len(y)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n]-'0' <= 9 {
		n++
	}
	return n
}

// readKind reads what is left when all packing is off.
func (l *loading) readKind(name string, packed bool, head []byte, r io.Reader) (*Trace, error) {
	lower := strings.ToLower(name)
	start := bytes.TrimLeft(head, " \t\r\n\ufeff")
	switch {
	case bytes.HasPrefix(head, []byte(sqlite.Magic)):
		return readNsys(l.ctx, name, packed, r, l.left, l.progress)
	case len(start) == 0, start[0] == '{', start[0] == '[':
		return readWithin(r, l.left)
	case strings.HasSuffix(lower, ".nsys-rep"), strings.HasSuffix(lower, ".qdrep"):
		return nil, errors.New("this is Nsight Systems' own report: run `nsys export --type sqlite` on it and give me the .sqlite file")
	case strings.HasSuffix(lower, ".ncu-rep"):
		return nil, errors.New("this is a report of Nsight Compute, which looks at single kernels: record the run with nsys or the framework's profiler")
	case strings.HasSuffix(lower, ".pftrace"), strings.HasSuffix(lower, ".perfetto-trace"):
		return nil, errors.New("this is a Perfetto trace: export it as Chrome JSON (traceconv json) and give me that")
	case strings.HasSuffix(lower, ".pickle"), strings.HasSuffix(lower, ".pkl"), head[0] == 0x80:
		return readSnapshot(r)
	case strings.HasSuffix(lower, ".pb"), looksLikeXplane(head):
		return readXplane(r, l.left)
	}
	return readWithin(r, l.left)
}

// InFile adds a file's name to an error.
func InFile(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }
