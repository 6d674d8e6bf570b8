package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

func (b *binder) halfCausal(o *kernel.CausalAttention) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}

func (b *binder) halfCausalGrad(o *kernel.CausalAttentionGrad) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}
