package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"haul/internal/limits"
)

// rocprofv3 writes one JSON object with lists of records. A record contains indices of its kind and
// operation in a table of strings, and the id of its kernel. Each record becomes an event of a
// Chrome trace. Times are in nanoseconds.

// rocprofKey is the first key of such a file.
const rocprofKey = "rocprofiler-sdk-tool"

type rocprofID struct {
	Handle uint64 `json:"handle"`
}

type rocprofRecord struct {
	Kind        int    `json:"kind"`
	Operation   int    `json:"operation"`
	Thread      uint64 `json:"thread_id"`
	Start       int64  `json:"start_timestamp"`
	End         int64  `json:"end_timestamp"`
	Bytes       uint64 `json:"bytes"`
	Correlation struct {
		Internal uint64 `json:"internal"`
	} `json:"correlation_id"`
	Dispatch *struct {
		Agent  rocprofID  `json:"agent_id"`
		Queue  rocprofID  `json:"queue_id"`
		Kernel uint64     `json:"kernel_id"`
		Grid   rocprofXYZ `json:"grid_size"`
		Group  rocprofXYZ `json:"workgroup_size"`
	} `json:"dispatch_info"`
	To   rocprofID `json:"dst_agent_id"`
	From rocprofID `json:"src_agent_id"`
}

// rocprofRecords is a list of records alone: a number in their place ends the reading, where the
// decoder would make a record of it.
type rocprofRecords []rocprofRecord

func (l *rocprofRecords) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return err // null
	}
	for d.More() {
		var r rocprofRecord
		if err := d.Decode(&r); err != nil {
			return err
		}
		*l = append(*l, r)
	}
	return nil
}

// rocprofCounter counts the objects of lists at the depth of records and of kernels' names, before
// any is decoded, and ends the reading past the limit of events.
type rocprofCounter struct {
	r       io.Reader
	left    *Budget
	over    error
	objects int64
	depth   int
	quoted  bool
	escaped bool
}

func (c *rocprofCounter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	for _, x := range b[:n] {
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped, c.quoted = x == '\\', x != '"'
		case x == '"':
			c.quoted = true
		case x == '[' || x == '{':
			// [{"kernel_symbols":[{ and [{"buffer_records":{"hip_api":[{
			if c.depth++; x == '{' && (c.depth == 4 || c.depth == 5) {
				c.objects++
			}
		case x == ']' || x == '}':
			c.depth--
		}
	}
	if c.objects > c.left.events {
		c.over = c.left.limits.Beyond(limits.Events)
		return 0, c.over
	}
	return n, err
}

type rocprofXYZ struct{ X, Y, Z float64 }

type rocprofTool struct {
	Agents []struct {
		ID         rocprofID `json:"id"`
		Type       int       `json:"type"` // 2 is a GPU
		Product    string    `json:"product_name"`
		Processors int       `json:"cu_count"`
	} `json:"agents"`
	Kernels []struct {
		ID        uint64 `json:"kernel_id"`
		Name      string `json:"kernel_name"`
		Formatted string `json:"formatted_kernel_name"`
	} `json:"kernel_symbols"`
	Strings struct {
		Buffer []struct {
			Kind       string   `json:"kind"`
			Operations []string `json:"operations"`
		} `json:"buffer_records"`
	} `json:"strings"`
	Records struct {
		Dispatches rocprofRecords `json:"kernel_dispatch"`
		HIP        rocprofRecords `json:"hip_api"`
		Copies     rocprofRecords `json:"memory_copy"`
	} `json:"buffer_records"`
}

// rocprof reads the value of that key, which is the rest of the file.
func (t *builder) rocprof(r io.Reader) error {
	counted := &rocprofCounter{r: r, left: t.left}
	d := json.NewDecoder(counted)
	var tools []rocprofTool
	if err := d.Decode(&tools); counted.over != nil {
		return counted.over
	} else if err != nil {
		return fmt.Errorf("the JSON of rocprofv3 cannot be read (%w): record it again, with --output-format json", err)
	}
	t.Format = "rocprofv3"
	n := 0
	for i := range tools {
		n += t.rocprofEvents(&tools[i])
	}
	if n == 0 {
		return errors.New("rocprofv3 recorded no kernels and no HIP calls: record with --hip-trace --kernel-trace --memory-copy-trace")
	}
	return nil
}

func (t *builder) rocprofEvents(tool *rocprofTool) int {
	devices := map[uint64]uint32{}
	for _, a := range tool.Agents {
		if a.Type == 2 {
			devices[a.ID.Handle] = uint32(len(devices))
			t.GPUModels = append(t.GPUModels, GPUModel{Name: "AMD " + strings.TrimPrefix(a.Product, "AMD "), Processors: a.Processors})
		}
	}
	kernels := map[uint64]string{}
	for _, k := range tool.Kernels {
		name := k.Formatted
		if name == "" {
			name = k.Name
		}
		kernels[k.ID] = name
	}
	word := func(r *rocprofRecord) string {
		if r.Kind < 0 || r.Kind >= len(tool.Strings.Buffer) {
			return ""
		}
		ops := tool.Strings.Buffer[r.Kind].Operations
		if r.Operation < 0 || r.Operation >= len(ops) {
			return ""
		}
		return ops[r.Operation]
	}
	n := 0
	put := func(r *rocprofRecord, cat category, name string, fill func(e *event)) {
		e := &event{phase: 'X', cat: cat, name: []byte(name), start: r.Start, dur: r.End - r.Start, hasStart: true, hasDur: true,
			pid: []byte("0"), tid: strconv.AppendUint(nil, r.Thread, 10)}
		e.args.blocks, e.args.total = -1, -1
		e.args.correlation = uint32(min(r.Correlation.Internal, math.MaxUint32))
		if fill != nil {
			fill(e)
		}
		t.add(e)
		n++
	}
	for i := range tool.Records.HIP {
		r := &tool.Records.HIP[i]
		put(r, catCall, word(r), nil)
	}
	for i := range tool.Records.Dispatches {
		r := &tool.Records.Dispatches[i]
		if r.Dispatch == nil {
			continue
		}
		put(r, CatKernel, kernels[r.Dispatch.Kernel], func(e *event) {
			e.args.device, e.args.hasDevice, e.args.stream = devices[r.Dispatch.Agent.Handle], true, uint32(r.Dispatch.Queue.Handle)
			g, b := r.Dispatch.Grid, r.Dispatch.Group
			e.args.grid = float32(max(1, g.X) / max(1, b.X) * max(1, g.Y) / max(1, b.Y) * max(1, g.Z) / max(1, b.Z))
		})
	}
	for i := range tool.Records.Copies {
		r := &tool.Records.Copies[i]
		name := "Memcpy DtoD"
		device, to := devices[r.To.Handle]
		if from, ok := devices[r.From.Handle]; ok && !to {
			name, device = "Memcpy DtoH", from
		} else if to && !ok {
			name = "Memcpy HtoD"
		}
		put(r, CatCopy, name, func(e *event) {
			e.args.device, e.args.hasDevice, e.args.stream = device, true, math.MaxUint32
			e.args.bytes = uint32(min(r.Bytes, math.MaxUint32))
		})
	}
	return n
}
