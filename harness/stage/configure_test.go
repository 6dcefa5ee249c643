package stage

import (
	"testing"

	"exp/harness/config"
	"exp/train"
	"exp/train/checkpoint"
)

// Every word of a key has a value of its own, and no other word has one.
func TestWordsHaveValues(t *testing.T) {
	words := func(path string) []string {
		k, ok := config.Lookup(path)
		if !ok || len(k.Words) < 3 {
			t.Fatalf("%s has few words", path)
		}
		return k.Words
	}
	seen := map[train.FilterBy]string{}
	for _, word := range words("algo.filter_groups.metric") {
		by, err := train.ParseFilterBy(word)
		if other, ok := seen[by]; ok || err != nil {
			t.Errorf("filter %s: %v, %v, the value of %q", word, by, err, other)
		}
		seen[by] = word
	}
	if by, err := train.ParseFilterBy("accuracy"); err == nil {
		t.Errorf("a filter without a word is %v", by)
	}
	types := map[checkpoint.DType]bool{}
	for _, word := range words("merge.dtype") {
		if types[mergedType(word)] {
			t.Errorf("merge.dtype %s is %q, like another word", word, mergedType(word))
		}
		types[mergedType(word)] = true
	}
	for _, kind := range words("reward.kind") {
		r := config.Reward{Kind: kind}
		if k, ok := rewardKinds()[kind]; !ok || (k.train != nil) != r.Self() || (k.scorer == nil) != r.ByTask() {
			t.Errorf("reward.kind %s is %+v", kind, k)
		}
	}
	if got, want := len(rewardKinds()), len(words("reward.kind")); got != want {
		t.Errorf("%d kinds of reward, but reward.kind has %d words", got, want)
	}
}
