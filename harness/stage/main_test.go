package stage

import (
	"os"
	"testing"

	"exp/sandbox"
)

func TestMain(m *testing.M) {
	if code, ok := sandbox.Enter(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
