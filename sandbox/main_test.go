package sandbox

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if code, ok := Enter(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
