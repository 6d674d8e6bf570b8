package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

func (b *binder) halfNorm(o *kernel.Norm) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}

func (b *binder) halfNormGrad(o *kernel.NormGrad) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}

func (b *binder) halfDropout(o *kernel.Dropout) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}
