package policy

import (
	"haul/internal/run"
	"haul/internal/safetensors"
)

// Pack returns a checkpoint for routing only: settings, and weights as F32 or BF16.
func Pack(ck *run.Checkpoint, as safetensors.DType) (*safetensors.File, error) {
	_, m, err := networkOf(ck)
	if err != nil {
		return nil, err
	}
	l := m.Layout()
	flat, err := ck.Weights(l, "")
	if err != nil {
		return nil, err
	}
	f := &safetensors.File{Metadata: ck.Bare()}
	for _, p := range l.Params {
		v := flat[p.Offset:][:p.Len()]
		t := safetensors.Float32s(p.Name, v, p.Shape...)
		if as == safetensors.BF16 {
			t = safetensors.BFloat16s(p.Name, v, p.Shape...)
		}
		f.Tensors = append(f.Tensors, t)
	}
	return f, nil
}
