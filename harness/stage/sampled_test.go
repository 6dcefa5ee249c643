package stage

import (
	"bytes"
	"context"
	"testing"

	"exp/eval"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/rollout"
)

// A blob of completions has the same bits whether all of them were sampled at once or some before, also
// where a completion ends within a character: such bytes are escapes in JSON.
func TestEarlierCompletionsKeepTheirBits(t *testing.T) {
	problems := []rollout.Problem{{ID: "p"}, {ID: "q"}}
	sampled := func(texts ...string) (list []eval.Sample) {
		for i, p := range problems {
			for k := range len(texts) / 2 {
				list = append(list, eval.Sample{ProblemID: p.ID, K: k, Completion: rollout.Completion{
					Tokens: []int32{4, 5}, LogProbs: []float32{-0.5, -1}, Finish: rollout.FinishLength,
					Text: texts[i*len(texts)/2+k]}})
			}
		}
		return list
	}
	texts := []string{"a\xe2\x82", "\ufffd", "\xff\\ufffd", "é"}
	all, err := completionLines(sampled(texts...))
	if err != nil {
		t.Fatal(err)
	}
	first, err := completionLines(sampled(texts[0], texts[2]))
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Blobs: blob.At(t.TempDir())}
	o, err := e.put(RoleCompletions, "completions", bytes.Join(first, nil))
	if err != nil {
		t.Fatal(err)
	}
	e.Sampled = &Sampled{Completions: o.Digest, N: 1}
	had := e.earlier(problems, 2)
	if had.each != 1 || len(had.samples) != 2 {
		t.Fatalf("%d of each, %d in all", had.each, len(had.samples))
	}
	got := joined(had.lines, [][]byte{all[1], all[3]}, len(problems))
	if want := bytes.Join(all, nil); !bytes.Equal(bytes.Join(got, nil), want) {
		t.Errorf("%s\nwant %s", bytes.Join(got, nil), want)
	}
}

// What sampling needs may be missing: an error, not a panic.
func TestSampleAgainWithoutWeights(t *testing.T) {
	lines, err := completionLines([]eval.Sample{{ProblemID: "p", Completion: rollout.Completion{Tokens: []int32{4},
		LogProbs: []float32{-1}, Finish: rollout.FinishLength}}})
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Config: &config.Resolved{}, Blobs: blob.At(t.TempDir())}
	o, err := e.put(RoleCompletions, "completions", lines[0])
	if err != nil {
		t.Fatal(err)
	}
	all := func(n int) []int { return []int{n - 1} }
	if _, err := SampleAgain(context.Background(), e, "test", Inputs{}, o.Digest, all); err == nil {
		t.Error("sampled without weights")
	}
	if _, err := SampleAgain(context.Background(), e, "test", Inputs{}, ident.Digest{1}, all); err == nil {
		t.Error("sampled without a record")
	}
}
