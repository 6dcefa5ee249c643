package task

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"exp/train/rollout"
)

// generating lists the tasks that can generate any number of problems.
func generating(t *testing.T) map[string]Task {
	t.Helper()
	list := map[string]Task{}
	for name, cfg := range map[string]Config{
		"countdown": {Kind: "countdown", Countdown: defaultCountdown()},
		"words":     {Kind: "words", Words: Words{LargestNumber: 20, Steps: 2}},
		"stories":   {Kind: "stories", Stories: Stories{MinSteps: 2, MaxSteps: 4, LargestNumber: 100}},
		"functions": {Kind: "functions", Functions: defaultFunctions()},
	} {
		task, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = task
	}
	return list
}

func generate(t *testing.T, task Task, split Split, n int, seed uint64) []rollout.Problem {
	t.Helper()
	problems, err := task.Generate(split, n, seed)
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) != n {
		t.Fatalf("%d problems, want %d", len(problems), n)
	}
	return problems
}

// No problem is in two splits, whatever the seeds, nor twice in one.
func TestSplitsAreDisjoint(t *testing.T) {
	for name, task := range generating(t) {
		t.Run(name, func(t *testing.T) {
			splitOfID := make(map[string]Split)
			for _, split := range []Split{Train, Val, Test} {
				for seed := uint64(1); seed <= 2; seed++ {
					ids := make(map[string]bool)
					for _, p := range generate(t, task, split, 400, seed) {
						if ids[p.ID] {
							t.Fatalf("%s comes twice in %s", p.ID, split)
						}
						ids[p.ID] = true
						if other, ok := splitOfID[p.ID]; ok && other != split {
							t.Fatalf("%s is in %s and in %s", p.ID, other, split)
						}
						splitOfID[p.ID] = split
					}
				}
			}
		})
	}
}

// The arithmetic of a word problem decides its split, not its words. EXP_TEST_ALL=1 draws more.
func TestWordProblemsSplitByArithmetic(t *testing.T) {
	drawn := 1200
	if os.Getenv("EXP_TEST_ALL") != "" {
		drawn = 3000
	}
	for _, kind := range []string{"words", "stories"} {
		t.Run(kind, func(t *testing.T) {
			task := generating(t)[kind]
			chains := make(map[string]Split)
			again := 0
			for _, split := range []Split{Train, Val, Test} {
				for _, p := range generate(t, task, split, drawn, 5) {
					key, _, _ := strings.Cut(p.ID, "#")
					other, ok := chains[key]
					if ok && other != split {
						t.Fatalf("the chain %s is in %s and in %s", key, other, split)
					}
					if ok {
						again++
					}
					chains[key] = split
				}
			}
			if again == 0 {
				t.Error("no chain came twice, which shows nothing")
			}
		})
	}
}

func TestGenerateIsAFunctionOfItsArguments(t *testing.T) {
	for name, task := range generating(t) {
		t.Run(name, func(t *testing.T) {
			long := generate(t, task, Val, 60, 9)
			if again := generate(t, task, Val, 60, 9); !reflect.DeepEqual(long, again) {
				t.Error("the same arguments gave other problems")
			}
			if short := generate(t, task, Val, 20, 9); !reflect.DeepEqual(long[:20], short) {
				t.Error("20 problems are not the first 20 of 60")
			}
			if other := generate(t, task, Val, 60, 10); reflect.DeepEqual(long, other) {
				t.Error("another seed gave the same problems")
			}
		})
	}
}

func TestSplitShares(t *testing.T) {
	const n = 20_000
	count := make(map[Split]int)
	for i := range n {
		count[splitOf("words", itoa(int64(i)))]++
	}
	for split, share := range map[Split]float64{Train: 0.8, Val: 0.1, Test: 0.1} {
		// five standard errors: 5·sqrt(0.16/20000) = 0.014
		if got := float64(count[split]) / n; got < share-0.015 || got > share+0.015 {
			t.Errorf("%s has a share of %.3f, want %.1f", split, got, share)
		}
	}
}

func TestGenerateRunsOut(t *testing.T) {
	// Sums of two numbers from 1 to 3 are few.
	small, err := New(Config{Kind: "countdown", Countdown: Countdown{
		MinNumbers: 2, MaxNumbers: 2, LargestNumber: 3, LargestTarget: 6,
		Operators: "+", Use: useAll, MinSolutions: 1,
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = small.Generate(Train, 100, 1)
	var scarce *ScarceError
	if !errors.As(err, &scarce) || scarce.Want != 100 || scarce.Found < 1 || scarce.Found > 6 {
		t.Errorf("error %v, want a ScarceError with 1 to 6 found", err)
	}
}

func TestGenerateRefuses(t *testing.T) {
	for name, task := range generating(t) {
		if _, err := task.Generate("sft", 1, 1); err == nil || !strings.Contains(err.Error(), `"sft"`) {
			t.Errorf("%s: unknown split: error %v", name, err)
		}
		if _, err := task.Generate(Train, -1, 1); err == nil {
			t.Errorf("%s: -1 problems: no error", name)
		}
	}
}

func TestNewUnknownKind(t *testing.T) {
	_, err := New(Config{Kind: "poetry"})
	if !errors.Is(err, ErrUnknownKind) || !strings.Contains(err.Error(), "countdown") {
		t.Errorf("error %v, want ErrUnknownKind that lists the kinds", err)
	}
	for _, kind := range Kinds() {
		if _, err := New(Config{Kind: kind}); errors.Is(err, ErrUnknownKind) {
			t.Errorf("%s is listed but unknown", kind)
		}
	}
}
