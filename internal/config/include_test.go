package config

import (
	"os"
	"path/filepath"
	"testing"
)

// A file for GT+RL may include another one, shipped or in the same folder.
func TestRoutingFilesInclude(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("include: quick.yaml\nproblem:\n  num_customers: 15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quick, err := Load("quick", nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if mine.Problem.NumCustomers() != 15 || mine.Training.NumEpochs != quick.Training.NumEpochs || mine.Model.HiddenDim != quick.Model.HiddenDim {
		t.Errorf("%+v", mine)
	}
}
