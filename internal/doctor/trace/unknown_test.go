package trace

import (
	"strings"
	"testing"
)

// Missing values of an event are unknown, not zero: how full a GPU is, the size of memory.
func TestMissingValuesAreUnknown(t *testing.T) {
	tr, err := Read(strings.NewReader(`{"deviceProperties":[{"name":"NVIDIA H200","numSms":132}],"traceEvents":[
{"ph":"X","cat":"kernel","name":"a","pid":3,"tid":7,"ts":1,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":9,"dur":5,"args":{"device":2,"blocks per SM":0.5}},
{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":19,"dur":5,"args":{"device":2,"grid":[66,1,1]}},
{"ph":"X","cat":"kernel","name":"d","pid":0,"tid":7,"ts":29,"dur":5,"args":{"device":2,"blocks per SM":-3}},
{"ph":"i","name":"mark","pid":0,"tid":7,"ts":30},
{"ph":"i","name":"[memory]","pid":0,"tid":7,"ts":31,"args":{"Total Allocated":0,"Bytes":-8,"Addr":5,"Device Id":1,"Device Type":1}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		blocks float32
		device uint16
	}{{-1, 3}, {0.5, 2}, {0.5, 2}, {-1, 2}} {
		if g := tr.GPU.At(i); g.Blocks != want.blocks || g.Device != want.device {
			t.Errorf("%d: %v blocks on device %d, want %v on %d", i, g.Blocks, g.Device, want.blocks, want.device)
		}
	}
	if tr.Memory.Len() != 1 || tr.Memory.At(0).Bytes != -8 || tr.Memory.At(0).Addr != 5 || tr.Memory.At(0).Device != 1 || tr.Memory.At(0).Host {
		t.Errorf("%d pieces of memory", tr.Memory.Len())
	}
}
