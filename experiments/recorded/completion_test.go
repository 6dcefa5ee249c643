package recorded

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"exp/experiments/store"
)

// There are more completions than fit a page of rows; some match a pattern.
func TestCompletions(t *testing.T) {
	f := newFixture(t)
	stages, err := f.db.Stages(f.ctx, f.child.ID)
	f.must(err)
	const n = completionPage + 5
	w := f.db.Blobs.NewPackWriter()
	var samples []store.Sample
	for i := range n {
		f.must(w.Add(map[string]any{"prompt": "p", "text": fmt.Sprintf("text %d", i), "components": map[string]float64{"format": 1}}))
		samples = append(samples, store.Sample{Stage: stages[1].Home, Scope: "train", Step: 1, Item: "a", K: i, Finish: "stop"})
	}
	refs, packs, err := w.Close()
	f.must(err)
	for i := range samples[:n-1] { // the last text was not kept
		samples[i].Ref = refs[i]
	}
	f.must(f.db.AddSamples(f.ctx, samples, packs))
	f.must(f.db.AddVerdicts(f.ctx, store.Scorer{Digest: digest("s"), Name: "s"}, []store.Verdict{
		{Sample: samples[0].ID, Graded: true, Correct: true, Reward: 0.5}, {Sample: samples[1].ID}}))
	q, err := OfSuite(f.ctx, f.db, f.child, "eval.gen", TrainSuite, store.SampleQuery{})
	f.must(err)
	read := func(c Completions, most int) ([]Completion, bool) {
		t.Helper()
		c.DB, c.Run, c.Suite, c.Query = f.db, f.child, TrainSuite, q
		list, more, err := c.Read(f.ctx, most)
		f.must(err)
		return list, more
	}
	list, more := read(Completions{}, 0)
	if len(list) != n || more || list[n-1].Kept || !list[n-2].Kept || list[3].Text != "text 3" || list[3].Components["format"] != 1 {
		t.Errorf("%d, more %t, the last %+v", len(list), more, list[len(list)-1])
	}
	if got := []string{list[0].Verdict(), list[1].Verdict(), list[2].Verdict()}; !slices.Equal(got, []string{"right", "not graded", "not graded"}) || list[0].Reward != 0.5 {
		t.Errorf("verdicts %q", got)
	}
	if list, more = read(Completions{Match: regexp.MustCompile(`100[0-9]$`)}, 3); len(list) != 3 || !more || list[0].K != 1000 {
		t.Errorf("%d match, more %t", len(list), more)
	}
	suites, err := Suites(f.ctx, f.db, f.child)
	if f.must(err); !slices.Equal(suites, []string{"test"}) || FirstTrained([]string{"test@start", "test"}) != "test" {
		t.Errorf("suites %q", suites)
	}
}

func TestEarned(t *testing.T) {
	c := Completion{Acts: []Act{{Reward: 0.25, State: "3fa9c2d1aa"}, {Reward: -2, State: "77"}}}
	if got := c.Earned(); got != "0.25 in 3fa9c2d1, -2.00 in 77" {
		t.Errorf("%q", got)
	}
}

// The text of an agent's conversations is cut where others speak, and each prompt stands before its conversation.
func TestPartsOfConversations(t *testing.T) {
	c := Completion{Text: "a[x]bcd[y]e", Inserted: []Span{{TextStart: 1, TextEnd: 4}, {TextStart: 7, TextEnd: 10}},
		Later: []Conversation{{TextStart: 5, Text: "B"}, {TextStart: 6, Text: "C"}, {TextStart: 11, Text: "D"}}}
	want := []Part{{Text: "a"}, {Text: "[x]", Tool: true}, {Text: "b"}, {Text: "B", Prompt: true}, {Text: "c"},
		{Text: "C", Prompt: true}, {Text: "d"}, {Text: "[y]", Tool: true}, {Text: "e"}, {Text: "D", Prompt: true}}
	if got := c.Parts(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	c.Later = nil
	if got := c.Parts(); len(got) != 5 || got[2].Text != "bcd" {
		t.Errorf("%+v", got)
	}
}
