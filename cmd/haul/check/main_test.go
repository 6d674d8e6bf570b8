package check_test

import (
	"testing"

	"haul/cmd/haul/clitest/inprocess"
)

func TestMain(m *testing.M) { inprocess.Main(m) }
