package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rollout"
)

// generatingTask makes Countdown problems and sums in words next to rows of mathematics.
func generatingTask(t *testing.T, generate map[Split]map[string]int) Task {
	t.Helper()
	x, err := New(Config{Kind: "mixed", Countdown: defaultCountdown(), Words: Words{LargestNumber: 20, Steps: 1},
		Mixed: Mixed{Kinds: map[string]string{"*": "math"}, Column: "data_source", Generate: generate},
		Math:  Math{Grader: "math_dapo"}, Reward: Reward{Correct: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Each kind makes its problems as it does alone. They are spread among the problems read, and can be read back.
func TestWithGenerated(t *testing.T) {
	x := generatingTask(t, map[Split]map[string]int{Train: {"countdown": 4, "words": 1}, Test: {"words": 2}})
	read := []rollout.Problem{{ID: "a", Prompt: "1+1?", Answer: "2", Kind: "math"},
		{ID: "b", Prompt: "2+2?", Answer: "4", Kind: "math"}}
	const seed = 5
	got, err := WithGenerated(x, Train, read, seed)
	if err != nil {
		t.Fatal(err)
	}
	parts := x.(*mixedTask).parts
	countdown, err := parts["countdown"].Generate(Train, 4, seed)
	if err != nil {
		t.Fatal(err)
	}
	words, err := parts["words"].Generate(Train, 1, seed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range countdown {
		countdown[i].Kind = "countdown"
	}
	words[0].Kind = "words"
	// Places: mathematics 1/4, 3/4; Countdown 1/8, 3/8, 5/8, 7/8; words 1/2.
	want := []rollout.Problem{countdown[0], read[0], countdown[1], words[0], countdown[2], read[1], countdown[3]}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	var b strings.Builder
	if err := Write(&b, got); err != nil {
		t.Fatal(err)
	}
	back, err := Read(x, strings.NewReader(b.String()), "stored")
	if d := cmp.Diff(got, back); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	for i := range got {
		target := got[i].Target
		if target == "" {
			target = "Answer: " + got[i].Answer
		}
		if v, err := x.Grade(t.Context(), &got[i], &rollout.Completion{Text: target}); err != nil || !v.Correct {
			t.Errorf("%s: %q: %+v, %v", got[i].Kind, target, v, err)
		}
	}

	tests, err := WithGenerated(x, Test, nil, seed)
	alone, e := parts["words"].Generate(Test, 2, seed)
	for i := range alone {
		alone[i].Kind = "words"
	}
	if d := cmp.Diff(alone, tests); d != "" || err != nil || e != nil {
		t.Errorf("test problems %v %v (-want +got)\n%s", err, e, d)
	}
	if none, err := WithGenerated(x, Val, read, seed); err != nil || len(none) != 2 {
		t.Errorf("a split without generated problems: %+v, %v", none, err)
	}
	if same, err := WithGenerated(parts["words"], Train, read, seed); err != nil || len(same) != 2 {
		t.Errorf("a task of one kind: %+v, %v", same, err)
	}
	if _, err := x.Generate(Train, 3, seed); !errors.Is(err, ErrNotGenerated) {
		t.Errorf("generated without numbers: %v", err)
	}
}

// Problems read keep their ids; a generated one with the same id is called KIND/ID.
func TestGeneratedIDs(t *testing.T) {
	x := generatingTask(t, map[Split]map[string]int{Train: {"countdown": 2}})
	made, err := WithGenerated(x, Train, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	read := []rollout.Problem{{ID: made[1].ID, Prompt: "?", Kind: "math"}}
	got, err := WithGenerated(x, Train, read, 1)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{got[0].ID, got[1].ID, got[2].ID}
	if d := cmp.Diff([]string{made[0].ID, made[1].ID, "countdown/" + made[1].ID}, ids); d != "" || got[1].Kind != "math" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// More problems of a kind begin with the fewer ones, and every beginning has each list in its share.
func TestSpread(t *testing.T) {
	list := func(kind string, n int) []rollout.Problem {
		return slices.Repeat([]rollout.Problem{{Kind: kind}}, n)
	}
	for _, tt := range []struct {
		a, b, c int
		want    string
	}{
		{0, 0, 0, ""}, {0, 2, 0, "bb"}, {1, 1, 1, "abc"}, {2, 2, 0, "abab"},
		{4, 2, 0, "abaaba"}, // a at 1, 3, 5, 7 eighths, b at 2, 6
		{1, 3, 0, "babb"},   // the second b is at 1/2 like a, which comes first
		{3, 1, 1, "aabca"},
	} {
		got := ""
		for _, p := range spread([][]rollout.Problem{list("a", tt.a), list("b", tt.b), list("c", tt.c)}) {
			got += p.Kind
		}
		if got != tt.want {
			t.Errorf("%d, %d and %d: %s, want %s", tt.a, tt.b, tt.c, got, tt.want)
		}
	}
	all := spread([][]rollout.Problem{list("a", 700), list("b", 200), list("c", 100)})
	count := map[string]int{}
	for i, p := range all {
		count[p.Kind]++
		for kind, share := range map[string]float64{"a": 0.7, "b": 0.2, "c": 0.1} {
			if off := float64(count[kind]) - share*float64(i+1); off > 2 || off < -2 {
				t.Fatalf("%d of the first %d are %s", count[kind], i+1, kind)
			}
		}
	}
}

// The alphabet has the characters of the kinds that are made, once each, and none of rows.
func TestGeneratedAlphabet(t *testing.T) {
	x := generatingTask(t, map[Split]map[string]int{Train: {"countdown": 1}, Val: {"words": 1}})
	parts := x.(*mixedTask).parts
	for _, kind := range []string{"countdown", "words"} {
		for _, r := range parts[kind].Alphabet() {
			if strings.Count(x.Alphabet(), string(r)) != 1 {
				t.Errorf("%q of %s: %q", r, kind, x.Alphabet())
			}
		}
	}
	if a := generatingTask(t, nil).Alphabet(); a != "" {
		t.Errorf("of rows alone: %q", a)
	}
}

// A kind that runs out of problems says in which key.
func TestScarceGenerated(t *testing.T) {
	x, err := New(Config{Kind: "mixed", Countdown: Countdown{MinNumbers: 2, MaxNumbers: 2, LargestNumber: 2,
		LargestTarget: 4, Operators: "+", Use: "any", MinSolutions: 1},
		Mixed: Mixed{Generate: map[Split]map[string]int{Train: {"countdown": 50}}}})
	if err != nil {
		t.Fatal(err)
	}
	var scarce *ScarceError
	if _, err := WithGenerated(x, Train, nil, 0); !errors.As(err, &scarce) || scarce.Want != 50 ||
		!strings.HasPrefix(err.Error(), "task.mixed.generate.train: countdown: 50 different train problems wanted") {
		t.Errorf("too many: %v", err)
	}
}

func TestGenerateErrors(t *testing.T) {
	for _, tt := range []struct {
		split Split
		kind  string
		n     int
		want  string
	}{
		{Train, "math", 5, `task.mixed.generate.train: nothing makes problems of kind "math"; the kinds are countdown, ` +
			`words, stories, functions`},
		{Val, "outcomes", 5, `task.mixed.generate.val: nothing makes problems of kind "outcomes"`},
		{Test, "words", 0, "task.mixed.generate.test: 0 problems of kind words"},
	} {
		_, err := New(Config{Kind: "mixed", Mixed: Mixed{Generate: map[Split]map[string]int{tt.split: {tt.kind: tt.n}}}})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%d of %s: %v, want %q", tt.n, tt.kind, err, tt.want)
		}
	}
	if _, err := New(Config{Kind: "mixed", Mixed: Mixed{Generate: map[Split]map[string]int{Train: {"words": 1}}}}); err == nil ||
		!strings.HasPrefix(err.Error(), "task.words.") {
		t.Errorf("settings of a kind: %v", err)
	}
}
