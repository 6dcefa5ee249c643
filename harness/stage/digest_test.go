package stage

import (
	"testing"

	"exp/train"
	"exp/train/rollout"
)

// The digests of a step's rollouts depend on every token and log-prob, on where a completion ends, and on the prompts
// that agents wrote in each of their conversations, with the images in them, and on what turns earned in which state.
func TestRolloutDigests(t *testing.T) {
	of := func(list ...rollout.Completion) string {
		all := make([]*rollout.Completion, len(list))
		for i := range list {
			all[i] = &list[i]
		}
		tokens, logProbs := RolloutDigests(all)
		return tokens.String() + logProbs.String()
	}
	a := rollout.Completion{Tokens: []int32{1, 2}, LogProbs: []float32{-1, -2}}
	b := rollout.Completion{Tokens: []int32{3}, LogProbs: []float32{-3}}
	asked := a
	asked.Asked = &rollout.Asked{Tokens: []int32{1}}
	otherwise := a
	otherwise.Asked = &rollout.Asked{Tokens: []int32{2}}
	several := func(change func(x *rollout.Asked)) rollout.Completion {
		c := rollout.Completion{Tokens: []int32{1, 2, 4}, LogProbs: []float32{-1, -2, -3}}
		c.Asked = &rollout.Asked{Tokens: []int32{1}, Later: []rollout.Later{{Start: 1, Tokens: []int32{5, 6}}}}
		change(c.Asked)
		return c
	}
	shows := func(digest string, first int32) rollout.Completion {
		c := rollout.Completion{Tokens: []int32{1, first + 1, 2}, LogProbs: []float32{-1, 0, -2}}
		c.Asked = &rollout.Asked{Tokens: []int32{first, first + 1}, Images: []rollout.ShownImage{
			{Picture: rollout.Picture{Digest: digest}, First: first, Tokens: 2}}}
		return c
	}
	if of(shows("a", 1000)) != of(shows("a", 2000)) {
		t.Error("the digests depend on the ids of images that agents brought")
	}
	acts := func(list ...rollout.Act) rollout.Completion {
		c := a
		c.Acts = list
		return c
	}
	seen := map[string]int{}
	for i, d := range []string{of(a, b), of(b, a), of(a), of(rollout.Completion{Tokens: []int32{1}, LogProbs: []float32{-1}},
		rollout.Completion{Tokens: []int32{2, 3}, LogProbs: []float32{-2, -3}}), of(asked, b), of(otherwise, b),
		of(rollout.Completion{Tokens: []int32{1, 2}, LogProbs: []float32{-1, -4}}, b),
		of(several(func(x *rollout.Asked) {})), of(several(func(x *rollout.Asked) { x.Later[0].Start = 2 })),
		of(several(func(x *rollout.Asked) { x.Later[0].Tokens = []int32{5, 7} })), of(several(func(x *rollout.Asked) { x.Final = 1 })),
		of(several(func(x *rollout.Asked) { x.Later = nil })), of(shows("a", 1000)), of(shows("b", 1000)),
		of(acts(rollout.Act{End: 2})), of(acts(rollout.Act{End: 2, Reward: 1})), of(acts(rollout.Act{End: 2, Reward: 1 + 1e-15})),
		of(acts(rollout.Act{End: 2, State: "a"})), of(acts(rollout.Act{End: 2, State: "b"})), of(acts(rollout.Act{End: 2, Conversation: "a"})),
		of(acts(rollout.Act{End: 1}, rollout.Act{Start: 1, End: 2})), of(acts(rollout.Act{}, rollout.Act{End: 2}))} {
		if j, ok := seen[d]; ok {
			t.Errorf("steps %d and %d have the same digests", j, i)
		}
		seen[d] = i
	}
}

// A step has sampled the tokens of its completions and of baselines, and none of a demonstration.
func TestSampledTokens(t *testing.T) {
	s := &train.Step{GreedyTokens: 2}
	for finish, n := range map[rollout.Finish]int{rollout.FinishStop: 3, rollout.FinishLength: 4, rollout.FinishShown: 5} {
		s.Trajectories = append(s.Trajectories, train.Trajectory{Completion: &rollout.Completion{Tokens: make([]int32, n), Finish: finish}})
	}
	if n := sampledTokens(s); n != 2+3+4 {
		t.Errorf("%d tokens, want 9", n)
	}
}
