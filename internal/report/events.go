package report

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// TensorBoard's event files. A record is a length and a serialized tensorflow.Event, each followed
// by its masked CRC-32C. The step of an event is the epoch or the iteration.

const eventPrefix = "events.out.tfevents."

// IsEvents reports whether a file of a run folder is an event file.
func IsEvents(name string) bool { return strings.HasPrefix(name, eventPrefix) }

// Field numbers of tensorflow.Event, Summary, Summary.Value and SessionLog.
const (
	eventWallTime, eventStep, eventVersion, eventSummary, eventSession = 1, 2, 3, 5, 7
	summaryValue                                                       = 1
	valueTag, valueSimple                                              = 1, 2
	sessionStatus, sessionStart                                        = 1, 1
)

// openEvents creates an event file in dir. A new run removes the event files of a run that it
// overwrites. A resumed run adds a file whose session mark makes TensorBoard drop points after
// `done`.
func openEvents(dir string, resumed bool, done int, now time.Time) (*appendFile, error) {
	if !resumed {
		old, err := os.ReadDir(dir) // no glob pattern: a folder's name may contain brackets and stars
		if err != nil {
			return nil, err
		}
		for _, entry := range old {
			if !IsEvents(entry.Name()) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	// Readers order the files of a folder by name: seconds, then a counter for restarts within a
	// second. After the clock was set back, the new file still follows the existing ones.
	seconds := max(now.Unix(), newest(dir))
	var f *appendFile
	for i := 0; f == nil; i++ {
		var err error
		f, err = openAppend(filepath.Join(dir, fmt.Sprintf("%s%010d.haul.%03d", eventPrefix, seconds, i)), os.O_EXCL)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	start := record(nil, event(now, 0, func(b []byte) []byte {
		return protowire.AppendString(protowire.AppendTag(b, eventVersion, protowire.BytesType), "brain.Event:2")
	}))
	if resumed {
		start = record(start, event(now, done+1, func(b []byte) []byte {
			b = protowire.AppendTag(b, eventSession, protowire.BytesType)
			return protowire.AppendBytes(b, protowire.AppendVarint(protowire.AppendTag(nil, sessionStatus, protowire.VarintType), sessionStart))
		}))
	}
	return f, f.add(start)
}

// newest returns the latest second in the name of an event file in dir, or 0.
func newest(dir string) (seconds int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), eventPrefix); ok {
			text, _, _ := strings.Cut(rest, ".")
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				seconds = max(seconds, n)
			}
		}
	}
	return seconds
}

// scalars returns the record of a row's curves.
func (t *table) scalars(row any, step int, now time.Time) []byte {
	var summary []byte
	v := reflect.ValueOf(row).Elem()
	for i := range t.curves {
		at, _ := t.curves[i].of(v).(*float64)
		if p, ok := t.curves[i].of(v).(**float64); ok {
			at = *p
		}
		if at == nil {
			continue
		}
		value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), t.curves[i].name)
		value = protowire.AppendFixed32(protowire.AppendTag(value, valueSimple, protowire.Fixed32Type), math.Float32bits(float32(*at)))
		summary = protowire.AppendBytes(protowire.AppendTag(summary, summaryValue, protowire.BytesType), value)
	}
	return record(nil, event(now, step, func(b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, eventSummary, protowire.BytesType), summary)
	}))
}

func event(now time.Time, step int, what func([]byte) []byte) []byte {
	b := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(float64(now.UnixMicro())/1e6))
	b = protowire.AppendVarint(protowire.AppendTag(b, eventStep, protowire.VarintType), uint64(step))
	return what(b)
}

// record appends data in the framing of TFRecord.
func record(dst, data []byte) []byte {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(data)))
	dst = binary.LittleEndian.AppendUint32(append(dst, size[:]...), masked(size[:]))
	return binary.LittleEndian.AppendUint32(append(dst, data...), masked(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns a CRC for data that may itself be under a CRC: rotated by 15 bits, plus a
// constant.
func masked(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
