package xplane

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"haul/internal/limits/limitstest"
)

// message is fields in the order given: a string or a message as bytes, anything else as a number.
func message(parts ...any) (b []byte) {
	for i := 0; i < len(parts); i += 2 {
		number := protowire.Number(parts[i].(int))
		switch v := parts[i+1].(type) {
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
		}
	}
	return b
}

// sample returns a space of two planes. The first names its kernel after the kernel's event, and
// has an unused statistic.
func sample() []byte {
	entry := func(key int, name string) []byte {
		return message(mapKey, key, mapValue, message(metadataID, key, metadataName, name))
	}
	event := message(eventMetadataID, 7, eventOffsetPS, 250, eventDurationPS, 1000, eventStats, message(statMetadataID, 3, statInt, 42),
		eventStats, message(statMetadataID, 4, statString, "unwanted"), eventStats, message(statMetadataID, 5, statRef, 6))
	gpu := message(planeName, "/device:GPU:0", planeLines, message(lineID, 13, lineName, "Stream #13", lineTimestampNS, 2, lineEvents, event),
		planeEventMetadata, entry(7, "gemm"), planeStatMetadata, entry(3, "correlation_id"), planeStatMetadata, entry(4, "flops"), planeStatMetadata, entry(5, "kernel_details"),
		planeStatMetadata, entry(6, "regs:32"))
	host := message(planeName, "/host:CPU", planeLines, message(lineID, 1, lineName, "python", lineDisplayName, "main", lineEvents, message(eventMetadataID, 1, eventDurationPS, 5)),
		planeEventMetadata, entry(1, "step"))
	return message(spacePlanes, gpu, 9, "a field of a later version", spacePlanes, host)
}

func TestReadNamesEventsWhoseMetadataFollows(t *testing.T) {
	var got []Event
	if err := Read(bytes.NewReader(sample()), func(e Event) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Plane: "/device:GPU:0", Line: "Stream #13", PlaneID: 0, LineID: 13, Name: "gemm", StartPS: 2250, DurationPS: 1000, Stats: map[string]string{"correlation_id": "42", "kernel_details": "regs:32"}},
		{Plane: "/host:CPU", Line: "main", PlaneID: 2, LineID: 1, Name: "step", DurationPS: 5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzRead: any file is read to its end or refused in one line, an event needs at least one byte of
// it, and reading it again gives the same events.
func FuzzRead(f *testing.F) {
	whole := sample()
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("hello, this is text"))
	f.Add([]byte{})
	f.Add(message(spacePlanes, message(planeLines, message(lineTimestampNS, 1<<62, lineEvents, message(eventMetadataID, 1)))))
	f.Add(append(protowire.AppendTag(nil, spacePlanes, protowire.BytesType), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			read := func() (events []Event, err error) {
				err = Read(bytes.NewReader(data), func(e Event) error { events = append(events, e); return nil })
				return events, err
			}
			events, err := read()
			if len(events) > len(data) {
				t.Errorf("%d events in %d bytes", len(events), len(data))
			}
			if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "\n")) {
				t.Errorf("error %q", err)
			}
			again, second := read()
			if diff := cmp.Diff(events, again); diff != "" || (err == nil) != (second == nil) {
				t.Errorf("read again: %v, then %v; %s", err, second, diff)
			}
		}, data)
	})
}

// TestMetadataGoesByItsKey, and by its own number where the map has none.
func TestMetadataGoesByItsKey(t *testing.T) {
	for what, entry := range map[string][]byte{
		"key":            message(mapKey, 7, mapValue, message(metadataName, "gemm")),
		"number":         message(mapValue, message(metadataID, 7, metadataName, "gemm")),
		"another number": message(mapKey, 7, mapValue, message(metadataID, 9, metadataName, "gemm")),
	} {
		plane := message(planeName, "/device:GPU:0", planeLines, message(lineID, 1, lineEvents, message(eventMetadataID, 7, eventDurationPS, 5)), planeEventMetadata, entry)
		var got []Event
		if err := Read(bytes.NewReader(message(spacePlanes, plane)), func(e Event) error { got = append(got, e); return nil }); err != nil || len(got) != 1 || got[0].Name != "gemm" {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}
