package recorded

import (
	"bytes"
	"slices"
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
	f.must(AddGolds(f.ctx, f.db, list))
	var got []string
	for _, c := range list {
		got = append(got, c.Gold)
	}
	if want := []string{"42", "2*3", "", "", ""}; !slices.Equal(got, want) {
		t.Errorf("golds %q, want %q", got, want)
	}
}
