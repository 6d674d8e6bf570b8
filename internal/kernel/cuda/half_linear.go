package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

func (b *binder) halfLinear(o *kernel.Linear) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}

func (b *binder) halfLinearGradX(o *kernel.LinearGradX) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}

func (b *binder) halfLinearGradW(o *kernel.LinearGradW) ([]launch, error) {
	return nil, fmt.Errorf("%s has no bf16 form yet", o.Kind())
}
