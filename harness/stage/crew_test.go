package stage

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/harness/config"
	"exp/train/ranks"
	"exp/train/reward"
	"exp/train/rollout"
)

// Who trains, samples, validates and judges among five ranks that share products in twos for training and in
// threes for sampling, where two or none only sample.
func TestCrewOfRanks(t *testing.T) {
	for _, tt := range []struct {
		name                           string
		samplers, every                int
		learn, sample, validate, judge []int
	}{
		{"all alike", 0, 1, []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, []int{0}},
		{"no validations", 0, 0, []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}, nil, []int{0}},
		{"apart", 2, 1, []int{0, 1, 2}, []int{0, 1, 3, 4}, []int{0, 1}, []int{3}},
		{"apart, no validations", 2, 0, []int{0, 1, 2}, []int{3, 4}, nil, []int{3}},
	} {
		c := config.Run{Compute: config.Compute{TensorParallel: 2, RolloutTensor: 3, RolloutRanks: tt.samplers}}
		c.Eval.Online.EverySteps = tt.every
		var learn, sample, validate, judge []int
		note := func(list *[]int, yes bool, rank int) {
			if yes {
				*list = append(*list, rank)
			}
		}
		for _, g := range ranks.InProcess(5) {
			e := &Env{Config: &config.Resolved{Run: c}, Ranks: g}
			w := e.crew()
			if g.Rank() < w.First || g.Rank() >= w.First+w.Ranks || w.All != 5 || w.Apart() != (tt.samplers > 0) {
				t.Errorf("%s: rank %d is of %+v", tt.name, g.Rank(), w)
			}
			note(&learn, w.Learns, g.Rank())
			note(&sample, e.samples(), g.Rank())
			note(&validate, e.validates(), g.Rank())
			note(&judge, e.judges(), g.Rank())
		}
		for i, list := range [][2][]int{{learn, tt.learn}, {sample, tt.sample}, {validate, tt.validate}, {judge, tt.judge}} {
			if !slices.Equal(list[0], list[1]) {
				t.Errorf("%s: ranks that %s: %v, want %v", tt.name, []string{"learn", "sample", "validate", "judge"}[i],
					list[0], list[1])
			}
		}
	}
}

// Five ranks, where two or none only sample: which ranks score by which reward, and which hold a reward model. Together
// the judges keep the limits of the configuration, also with the first rank, which validates.
func TestCrewScores(t *testing.T) {
	for _, tt := range []struct {
		kind                        string
		samplers, concurrent, every int
		judge                       []int // ranks that score in training
		learnersHold, samplersHold  bool
		requests                    int // at a time, of all judges
		alike                       bool
	}{
		{kind: "command", judge: []int{0}, learnersHold: true},
		{kind: "model", judge: []int{0, 1, 2, 3, 4}, learnersHold: true},
		{kind: config.TrainedReward, judge: []int{0, 1, 2, 3, 4}, learnersHold: true},
		{kind: "genrm", judge: []int{0, 1, 2, 3, 4}, learnersHold: true, alike: true},
		{kind: "genrm", samplers: 2, judge: []int{3, 4}, samplersHold: true, alike: true},
		{kind: "command", samplers: 2, every: 1, judge: []int{3}, learnersHold: true, samplersHold: true},
		{kind: "model", samplers: 2, every: 1, judge: []int{3, 4}, learnersHold: true, samplersHold: true},
		{kind: "judge", concurrent: 3, judge: []int{0, 1, 2}, learnersHold: true, requests: 3, alike: true},
		{kind: "judge", concurrent: 1, judge: []int{0}, learnersHold: true, requests: 1},
		{kind: "judge", concurrent: 7, judge: []int{0, 1, 2, 3, 4}, learnersHold: true, requests: 7, alike: true},
		{kind: "judge", samplers: 2, concurrent: 2, judge: []int{3, 4}, samplersHold: true, requests: 2, alike: true},
		{kind: "judge", samplers: 2, concurrent: 2, every: 1, judge: []int{3}, learnersHold: true, samplersHold: true, requests: 2},
		{kind: "judge", samplers: 2, concurrent: 1, every: 1, judge: []int{3}, learnersHold: true, samplersHold: true, requests: 2},
		{kind: "judge", samplers: 2, concurrent: 8, every: 1, judge: []int{3, 4}, learnersHold: true, samplersHold: true, requests: 8, alike: true},
	} {
		c := config.Run{Task: config.Task{Kind: config.PromptsTask}, Compute: config.Compute{TensorParallel: 1, RolloutRanks: tt.samplers},
			Reward: config.Reward{Kind: tt.kind, Judge: config.Judge{Concurrent: tt.concurrent, Template: filepath.Join(t.TempDir(), "judge.txt")}}}
		if err := os.WriteFile(c.Reward.Judge.Template, []byte("{prompt}: {response}, {gold}"), 0o666); err != nil {
			t.Fatal(err)
		}
		c.Eval.Online.EverySteps = tt.every
		var judge []int
		requests, rate := 0, 0.0
		for _, g := range ranks.InProcess(5) {
			e := &Env{Config: &config.Resolved{Run: c}, Ranks: g}
			judges := e.judges()
			if judges {
				judge = append(judge, g.Rank())
				how, err := e.judging(true)
				if err != nil || how.Ranks != len(tt.judge) || (how.Alike != nil) != tt.alike {
					t.Errorf("%s, %d samplers: %+v, %v", tt.kind, tt.samplers, how, err)
				} else if tt.alike {
					got := how.Alike(rollout.Item{Problem: &rollout.Problem{Prompt: "P", Answer: "G"}, Completion: &rollout.Completion{Text: "R"}})
					if got != "P: R, G" {
						t.Errorf("%s reads %q", tt.kind, got)
					}
				}
			}
			if judges || g.Rank() == 0 && tt.every > 0 {
				o := reward.JudgeOptions{Concurrent: tt.concurrent, Rate: 3}.Share(e.seat())
				requests, rate = requests+o.Concurrent, rate+o.Rate
			}
		}
		if !slices.Equal(judge, tt.judge) || tt.kind == "judge" && (requests != tt.requests || math.Abs(rate-3) > 1e-9) {
			t.Errorf("%s, %d samplers, validations %d, concurrent %d: ranks %v score, want %v; %d requests at a time, want %d; %v a second",
				tt.kind, tt.samplers, tt.every, tt.concurrent, judge, tt.judge, requests, tt.requests, rate)
		}
		if l, s := Learners(&c, 5).Scores(&c), Samplers(&c, 5).Scores(&c); l != tt.learnersHold || tt.samplers > 0 && s != tt.samplersHold {
			t.Errorf("%s, %d samplers, validations %d: learners hold it %t, samplers %t", tt.kind, tt.samplers, tt.every, l, s)
		}
	}
	c := config.Run{Reward: config.Reward{Kind: "model"}, Compute: config.Compute{TensorParallel: 1, RolloutRanks: 2}}
	for _, g := range ranks.InProcess(3) { // all of them rate
		e := &Env{Config: &config.Resolved{Run: c}, Ranks: g, rating: true}
		if how, err := e.judging(true); !e.judges() || how.Ranks != 3 || err != nil {
			t.Errorf("pass rates: rank %d of %+v, %v", g.Rank(), how, err)
		}
		if how, err := e.judging(false); how.Ranks != 3 || how.Alike != nil || err != nil {
			t.Errorf("pass rates by the task: %+v, %v", how, err)
		}
	}
}

// Ranks that run programs to grade share the cores, and run equal programs once; a rank that does so alone has all.
func TestRanksRunPrograms(t *testing.T) {
	for _, tt := range []struct {
		kind  string
		ranks int
		slots int
	}{{"task", 2, 3}, {config.Majority, 2, 3}, {"model", 2, 3}, {"command", 2, 0}, {"task", 1, 0}} {
		c := config.Run{Task: config.Task{Kind: "functions"}, Reward: config.Reward{Kind: tt.kind}, Compute: config.Compute{TensorParallel: 1, Threads: 3}}
		e := &Env{Config: &config.Resolved{Run: c}, Ranks: ranks.InProcess(tt.ranks)[0], Before: 2}
		if got := e.gradingSandbox(); got.Slots != tt.slots || got.First != uint64(2*tt.slots) {
			t.Errorf("%s, %d ranks: %d programs at a time after %d, want %d", tt.kind, tt.ranks, got.Slots, got.First, tt.slots)
		}
		how, err := e.judging(false)
		if err != nil || how.Ranks != tt.ranks || how.Alike == nil {
			t.Fatalf("%s: %+v, %v", tt.kind, how, err)
		}
		read := func(problem, text string) string {
			return how.Alike(rollout.Item{Problem: &rollout.Problem{ID: problem}, Completion: &rollout.Completion{Text: text}})
		}
		if read("a", "x") != read("a", "x") || read("a", "x") == read("b", "x") || read("a", "x") == read("a", "y") {
			t.Error("programs that are alike, or are not")
		}
	}
}
