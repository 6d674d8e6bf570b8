// Package xplane reads the profiles of JAX and TensorFlow for package trace: an XSpace message of
// planes (a device, a host), lines (a stream, a thread) and events. It decodes only the fields that
// the doctor needs and skips the others, so that new fields do no harm.
//
// A plane's events refer to their metadata by number, and the metadata may follow the events. So a
// plane is decoded after all of it has been read.
package xplane

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Event is one event with its line and its plane.
type Event struct {
	Plane, Line string
	PlaneID     int
	LineID      int64
	Name        string
	StartPS     int64 // since the start of the line's clock, in picoseconds
	DurationPS  int64
	Stats       map[string]string
}

// Field numbers of the messages, from xplane.proto.
const (
	spacePlanes = 1

	planeName          = 2
	planeLines         = 3
	planeEventMetadata = 4
	planeStatMetadata  = 5

	lineID          = 1
	lineName        = 2
	lineTimestampNS = 3
	lineEvents      = 4
	lineDisplayName = 11

	eventMetadataID = 1
	eventOffsetPS   = 2
	eventDurationPS = 3
	eventStats      = 4

	metadataID          = 1
	metadataName        = 2
	metadataDisplayName = 4

	statMetadataID = 1
	statDouble     = 2
	statUint       = 3
	statInt        = 4
	statString     = 5
	statRef        = 7

	mapKey, mapValue = 1, 2
)

// maxPlane limits the memory of one plane in bytes.
const maxPlane = 1 << 31

var errDamaged = errors.New("the xplane file is damaged or cut off: copy or record it again")

// wanted are the statistics that the doctor uses. Decoding others would cost memory.
var wanted = map[string]bool{"correlation_id": true, "kernel_details": true, "memcpy_details": true, "device_id": true, "bytes": true}

// Read hands over every event, until each returns an error. Planes come in the file's order.
func Read(r io.Reader, each func(Event) error) error {
	b := bufio.NewReaderSize(r, 1<<16)
	for n := 0; ; n++ {
		tag, err := binary.ReadUvarint(b)
		if err == io.EOF {
			if n == 0 {
				return errors.New("the file is empty")
			}
			return nil
		}
		if err != nil {
			return errDamaged
		}
		number, kind := protowire.DecodeTag(tag)
		if number < 1 || kind != protowire.BytesType {
			return errors.New("this is no xplane file")
		}
		size, err := binary.ReadUvarint(b)
		if err != nil {
			return errDamaged
		}
		if number != spacePlanes {
			if _, err := io.CopyN(io.Discard, b, int64(min(size, math.MaxInt64))); err != nil {
				return errDamaged
			}
			continue
		}
		if size > maxPlane {
			return fmt.Errorf("a plane of %d MB is too large to read", size>>20)
		}
		data, err := io.ReadAll(io.LimitReader(b, int64(size)))
		if err != nil {
			return err
		}
		if uint64(len(data)) != size {
			return errDamaged
		}
		if err := plane(n, data, each); err != nil {
			return err
		}
	}
}

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	value  uint64
}

// fields calls visit with each field of a message.
func fields(b []byte, visit func(f field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errDamaged
		}
		b = b[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return errDamaged
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

type decoder struct {
	name   string
	id     int
	events map[uint64]string
	stats  map[uint64]string
	lines  [][]byte
	each   func(Event) error
}

func plane(id int, data []byte, each func(Event) error) error {
	d := &decoder{id: id, events: map[uint64]string{}, stats: map[uint64]string{}, each: each}
	err := fields(data, func(f field) error {
		switch f.number {
		case planeName:
			d.name = string(f.bytes)
		case planeLines:
			d.lines = append(d.lines, f.bytes)
		case planeEventMetadata:
			return d.metadata(f.bytes, d.events)
		case planeStatMetadata:
			return d.metadata(f.bytes, d.stats)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range d.lines {
		if err := d.line(l); err != nil {
			return err
		}
	}
	return nil
}

// metadata reads one entry of a map from number to name.
func (d *decoder) metadata(entry []byte, into map[uint64]string) error {
	var key uint64
	var name, display string
	err := fields(entry, func(f field) error {
		switch f.number {
		case mapKey:
			key = f.value
		case mapValue:
			return fields(f.bytes, func(f field) error {
				switch f.number {
				case metadataID:
					if key == 0 {
						key = f.value
					}
				case metadataName:
					name = string(f.bytes)
				case metadataDisplayName:
					if f.kind == protowire.BytesType {
						display = string(f.bytes)
					}
				}
				return nil
			})
		}
		return nil
	})
	if display != "" {
		name = display
	}
	into[key] = name
	return err
}

func (d *decoder) line(data []byte) error {
	e := Event{Plane: d.name, PlaneID: d.id}
	var name, display string
	var timestamp int64
	var events [][]byte
	err := fields(data, func(f field) error {
		switch f.number {
		case lineID:
			e.LineID = int64(f.value)
		case lineName:
			name = string(f.bytes)
		case lineDisplayName:
			display = string(f.bytes)
		case lineTimestampNS:
			timestamp = int64(f.value)
		case lineEvents:
			events = append(events, f.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if display != "" {
		name = display
	}
	e.Line = name
	for _, b := range events {
		if err := d.event(b, e, timestamp); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) event(data []byte, e Event, timestamp int64) error {
	var offset int64
	err := fields(data, func(f field) error {
		switch f.number {
		case eventMetadataID:
			e.Name = d.events[f.value]
		case eventOffsetPS:
			offset = int64(f.value)
		case eventDurationPS:
			e.DurationPS = int64(f.value)
		case eventStats:
			return d.stat(f.bytes, &e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// a time since 1970 in picoseconds would overflow
	if timestamp > math.MaxInt64/1000-1 || timestamp < 0 {
		return errDamaged
	}
	e.StartPS = timestamp*1000 + offset
	return d.each(e)
}

func (d *decoder) stat(data []byte, e *Event) error {
	name, value := "", ""
	return fields(data, func(f field) error {
		switch f.number {
		case statMetadataID:
			if name = d.stats[f.value]; !wanted[name] {
				name = ""
			}
			return nil
		case statUint, statInt:
			value = fmt.Sprint(int64(f.value))
		case statString:
			value = string(f.bytes)
		case statRef:
			value = d.stats[f.value]
		case statDouble:
			value = fmt.Sprint(math.Float64frombits(f.value))
		default:
			return nil
		}
		if name != "" {
			if e.Stats == nil {
				e.Stats = map[string]string{}
			}
			e.Stats[name] = value
		}
		return nil
	})
}
