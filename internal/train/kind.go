package train

import (
	"fmt"

	"haul/internal/safetensors"
)

// ModelOf says which recipe a checkpoint belongs to: ModelName or ADName.
func ModelOf(path string) (string, error) {
	f, err := safetensors.Load(path)
	if err != nil {
		return "", fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	m, ok := f.Metadata[keyModel]
	if !ok {
		return "", fmt.Errorf("load checkpoint %s: a safetensors file, but no Haul checkpoint: its metadata has no %s", path, keyModel)
	}
	return m, nil
}
