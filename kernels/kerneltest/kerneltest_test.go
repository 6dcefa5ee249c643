package kerneltest

import (
	"fmt"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// operations lists every operation that writes; watched sees them all.
func operations() []string {
	return []string{"Copy", "Zero", "Add", "MatMul", "MatMulDX", "MatMulSwiGLU", "MatMulDXSwiGLU", "MatMulDW", "Embed", "EmbedBackward", "RMSNorm", "AddRMSNorm",
		"RMSNormBackward", "LayerNorm", "LayerNormBackward", "GELU", "GELUBackward", "Dropout",
		"Rope", "Attention", "AttentionBackward", "AppendKV", "PagedAttention", "CopyPages", "GatherRows", "ScatterRows",
		"SegmentMean", "SegmentMeanBackward", "LogProb", "LogProbBackward", "Logits", "Sample", "TopTokens", "AdamW", "SumSquares",
		"Gate", "GateBackward", "XIELU", "XIELUBackward", "Clip", "ClipBackward", "TakeColumns", "AddColumns", "Route", "RouteBackward", "Combine", "CombineBackward",
		"ShortConv", "ShortConvBackward", "GatedConv", "GatedConvBackward", "DeltaGates", "DeltaGatesBackward",
		"DeltaRule", "DeltaRuleBackward", "GatedNorm", "GatedNormBackward", "GroupedNorm", "GroupedNormBackward", "CopyStates", "SplitGates", "JoinGates", "OutputGate", "OutputGateBackward"}
}

// TestFindsSpoiledBuffers spoils each buffer of each operation in turn: one bit
// of an output, an element just outside of it, an element of an input.
func TestFindsSpoiledBuffers(t *testing.T) {
	defects := []struct {
		name   string
		defect func(k int) func(out, in []kernels.Buffer)
	}{
		{"first element of output", func(k int) func(out, in []kernels.Buffer) {
			return func(out, _ []kernels.Buffer) { flip(at(out, k), 0) }
		}},
		{"last element of output", func(k int) func(out, in []kernels.Buffer) {
			return func(out, _ []kernels.Buffer) { flip(at(out, k), at(out, k).Len()-1) }
		}},
		{"element before output", func(k int) func(out, in []kernels.Buffer) {
			return func(out, _ []kernels.Buffer) { flip(at(out, k), -1) }
		}},
		{"element after output", func(k int) func(out, in []kernels.Buffer) {
			return func(out, _ []kernels.Buffer) { flip(at(out, k), at(out, k).Len()) }
		}},
		{"input", func(k int) func(out, in []kernels.Buffer) {
			return func(_, in []kernels.Buffer) { flip(at(in, k), 0) }
		}},
	}
	for _, op := range operations() {
		for _, d := range defects {
			// The number of buffers is known after the first call.
			for k, count := 0, 1; k < count; k++ {
				seen := false
				defect := d.defect(k)
				b := &watched{Backend: ref.New[float32](), after: func(name string, out, in []kernels.Buffer) {
					if name != op || out[0].Empty() {
						return
					}
					seen = true
					count = len(out)
					if d.name == "input" {
						count = len(in)
					}
					defect(out, in)
				}}
				found := finds(b, op, true)
				if !seen {
					t.Fatalf("no check calls %s", op)
				}
				if k < count && found == "" {
					t.Errorf("%s: a changed %s %d goes unnoticed", op, d.name, k)
				}
				if testing.Short() {
					break
				}
			}
		}
	}
}

// at returns the k-th buffer, or an empty one.
func at(b []kernels.Buffer, k int) kernels.Buffer {
	if k >= len(b) {
		return kernels.Buffer{}
	}
	return b[k]
}

// known are the references' answers to the short suite, for all tests of this package.
var known = answers{}

// finds runs the checks of an operation, or the one check with this name, until
// one fails, and returns what it said. A panic counts: a spoiled token id is out
// of range for the next operation.
func finds(b kernels.Backend, op string, exact bool) (found string) {
	defer func() {
		if p := recover(); p != nil {
			found = fmt.Sprint(p)
		}
	}()
	s := newSubject(b, true)
	s.exact = exact
	for _, c := range checks() {
		group, _, _ := strings.Cut(c.name, "/")
		if c.name != op && group != op && group+"Backward" != op {
			continue
		}
		if err := s.check(c, known); err != nil {
			return err.Error()
		}
	}
	return ""
}

// TestEveryOperationIsMeasured holds the table of benchmarks against the list of
// operations.
func TestEveryOperationIsMeasured(t *testing.T) {
	measured := map[string]bool{}
	for _, m := range benchmarks() {
		measured[m.op] = true
	}
	for _, op := range operations() {
		if !measured[op] {
			t.Errorf("%s has no benchmark", op)
		}
	}
}
