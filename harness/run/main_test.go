package run

import (
	"os"
	"runtime/debug"
	"testing"

	"exp/sandbox"
)

func TestMain(m *testing.M) {
	if code, ok := sandbox.Enter(); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "tool-program" {
		toolProgram()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "agent-program" {
		agentProgram(append(os.Args, "")[2])
		return
	}
	debug.SetGCPercent(400) // a fifteenth of the processor time goes into collecting garbage
	code := m.Run()
	os.RemoveAll(stores)
	os.Exit(code)
}
