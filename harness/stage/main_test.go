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
	if len(os.Args) > 1 && os.Args[1] == "agent-program" {
		agentProgram()
		return
	}
	os.Exit(m.Run())
}
