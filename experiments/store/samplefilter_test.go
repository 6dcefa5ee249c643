package store

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/blob"
)

// Four samples of two problems, under two scorers that disagree on b1:
//
//	     tokens  old    new      reward of the new one
//	a0   10      right  right    1
//	a1   20      wrong  wrong    0
//	b0   30      right  right    0.5
//	b1   40      right  wrong    0
func TestSampleFilters(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, gen := evalRun(t, db)
	var samples []Sample
	for i, item := range []string{"a", "a", "b", "b"} {
		samples = append(samples, Sample{Stage: gen.Home, Scope: "eval", Item: item, K: i % 2, OutTokens: int64(10 * (i + 1)), Finish: "stop"})
	}
	w := db.Blobs.NewPackWriter()
	if err := w.Add("text"); err != nil {
		t.Fatal(err)
	}
	refs, packs, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	kept := refs[0] // of b1; the texts of others were not kept
	samples[3].Ref = kept
	if err := db.AddSamples(ctx, samples, packs); err != nil {
		t.Fatal(err)
	}
	judge := func(name string, right []bool, rewards []float64) {
		var list []Verdict
		for i, s := range samples {
			list = append(list, Verdict{Sample: s.ID, Graded: true, Correct: right[i], Reward: rewards[i], Reason: name})
		}
		if err := db.AddVerdicts(ctx, Scorer{digest("%s", name), name}, list); err != nil {
			t.Fatal(err)
		}
	}
	judge("old", []bool{true, false, true, true}, []float64{1, 0, 1, 1})
	judge("new", []bool{true, false, true, false}, []float64{1, 0, 0.5, 0})
	number := func(v float64) *float64 { return &v }
	for want, q := range map[string]SampleQuery{
		"a0 a1 b0 b1": {},
		"a0 b0":       {MinReward: number(0.5)},
		"a1 b1":       {MaxReward: number(0)},
		"b0":          {MinReward: number(0.1), MaxReward: number(0.9)},
		"a1 b0":       {MinTokens: 20, MaxTokens: 30},
		"b1":          {Disputed: true},
		"":            {Disputed: true, MaxTokens: 30},
	} {
		rows, err := db.Samples(ctx, run.ID, q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range rows {
			got = append(got, s.Item+string(rune('0'+s.K)))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%+v: %q, want %q", q, text, want)
		}
	}
	// Demonstrations do not count, under any scorer.
	shown := []Sample{{Stage: gen.Home, Scope: "eval", Item: "a", K: 2, OutTokens: 90, Finish: "shown"}}
	if err := db.AddSamples(ctx, shown, nil); err != nil {
		t.Fatal(err)
	}
	long := SampleQuery{MinTokens: 50}
	all, err := db.Samples(ctx, run.ID, long)
	long.Sampled = true
	if sampled, err2 := db.Samples(ctx, run.ID, long); len(all) != 1 || len(sampled) != 0 || err != nil || err2 != nil {
		t.Errorf("%d long samples, %d of a policy, %v, %v; want one demonstration", len(all), len(sampled), err, err2)
	}
	counts, err := db.ItemCounts(ctx, run.ID, SampleQuery{})
	if diff := cmp.Diff([]ItemCount{{"a", 2, 2, 1, 15, blob.Ref{}}, {"b", 2, 2, 1, 35, kept}}, counts); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	verdicts, err := db.Verdicts(ctx, []int64{samples[3].ID, samples[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range verdicts {
		got = append(got, v.Scorer.Name)
	}
	if !slices.Equal(got, []string{"old", "new", "old", "new"}) || verdicts[0].Sample != samples[0].ID || verdicts[3].Correct {
		t.Errorf("verdicts %+v", verdicts)
	}
}
