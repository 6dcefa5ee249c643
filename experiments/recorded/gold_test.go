package recorded

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
)

// Right answers come from the problems that the stage of a completion read, by the scope's role.
func TestAddGolds(t *testing.T) {
	f := newFixture(t)
	asked := []byte(`{"id":"a","prompt":"6*7?","answer":"42"}` + "\n" + `{"id":"b","prompt":"2,3=6:","target":"2*3"}` + "\n")
	_, _, err := f.db.Blobs.Put(bytes.NewReader(asked))
	f.must(err)
	stage := func(label string, inputs ...store.IO) int64 {
		st, err := f.db.BeginStage(f.ctx, store.Stage{SID: digest(label), Run: f.child.ID, Kind: "eval.gen", Label: label,
			Code: digest("code"), Inputs: inputs})
		f.must(err)
		return st.ID
	}
	here := stage("here", store.IO{Role: "weights", Digest: digest("w")}, store.IO{Role: "problems", Digest: digest(string(asked))})
	gone := stage("gone", store.IO{Role: "problems", Digest: digest("another store")})
	list := []Completion{{Item: "a", stage: here, scope: "eval"}, {Item: "b", stage: here, scope: "eval"},
		{Item: "c", stage: here, scope: "eval"}, {Item: "a", stage: here, scope: "train"}, {Item: "a", stage: gone, scope: "eval"}}
	golds := func(list []Completion) (got []string) {
		f.must(AddGolds(f.ctx, f.db, list))
		for _, c := range list {
			got = append(got, c.Gold)
		}
		return got
	}
	if got, want := golds(list), []string{"42", "2*3", "", "", ""}; !slices.Equal(got, want) {
		t.Errorf("golds %q, want %q", got, want)
	}
	// Ids may be escaped, the last line may not end, and what follows the last problem that is asked for is not read.
	odd := []byte(`{"id":"\"q\"","answer":"1"}` + "\n" + `{"id":"c","answer":"2"}` + "\n" + `{"answer":`)
	_, _, err = f.db.Blobs.Put(bytes.NewReader(odd))
	f.must(err)
	strange := stage("strange", store.IO{Role: "problems", Digest: digest(string(odd))})
	list = []Completion{{Item: `"q"`, stage: strange, scope: "eval"}, {Item: "c", stage: strange, scope: "eval"}}
	if got := golds(list); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("golds %q", got)
	}
	list = append(list, Completion{Item: "z", stage: strange, scope: "eval"})
	if err := AddGolds(f.ctx, f.db, list); err == nil || !strings.Contains(err.Error(), "problems ") {
		t.Errorf("a cut file: %v", err)
	}
}
