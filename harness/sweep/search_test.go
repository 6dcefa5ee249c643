package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRange(t *testing.T) {
	for text, want := range map[string]Range{
		"train.optim.lr=log:1e-6..1e-4": {Key: "train.optim.lr", Low: 1e-6, High: 1e-4, Log: true},
		"rollout.n=2..8":                {Key: "rollout.n", Low: 2, High: 8, Whole: true},
		"a.b= -1 .. 2.5":                {Key: "a.b", Low: -1, High: 2.5},
		"a.n=log:1..64":                 {Key: "a.n", Low: 1, High: 64, Log: true, Whole: true},
		"algo.kind=ppo,grpo":            {Key: "algo.kind", Values: []string{"ppo", "grpo"}},
	} {
		got, err := ParseRange(text)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, d)
		}
	}
	for text, want := range map[string]string{
		"k=2..1":        "ends before it begins",
		"k=2..2":        "both ends of the range 2..2 are equal; k=2 draws that one value",
		"k=log:0..1":    "begins above 0",
		"k=a..b":        "not a range of numbers",
		"k=1..inf":      "not a range of numbers",
		"=1..2":         "KEY=VALUE",
		"seed=0..9":     "seeds are not an axis",
		"k+=1..2":       "appends",
		"train.optim.l": "KEY=VALUE",
	} {
		if _, err := ParseRange(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func ranges(t *testing.T, texts ...string) []Range {
	t.Helper()
	var list []Range
	for _, text := range texts {
		r, err := ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// Trials depend on the search's seed only, lie in their ranges, spread over them, and a longer
// search begins with the shorter one.
func TestSearch(t *testing.T) {
	list := ranges(t, "train.optim.lr=log:1e-6..1e-2", "rollout.n=2..5", "algo.kind=ppo,grpo")
	long, err := Search(list, 200, 7)
	if err != nil {
		t.Fatal(err)
	}
	short, err := Search(list, 20, 7)
	if d := cmp.Diff(long[:20], short); err != nil || d != "" {
		t.Errorf("a shorter search is another one: %v (-long +short):\n%s", err, d)
	}
	if other, _ := Search(list, 20, 8); slices.EqualFunc(short, other, func(a, b Arm) bool { return a.Label == b.Label }) {
		t.Error("another seed draws the same")
	}
	count := map[string]int{}
	for i, a := range long {
		if slices.ContainsFunc(long[:i], func(b Arm) bool { return a.Label == b.Label }) {
			t.Errorf("trial %d is there already: %s", i, a.Label)
		}
		lr, err := strconv.ParseFloat(valueOf(a, "train.optim.lr"), 64)
		if err != nil || lr < 1e-6 || lr > 1e-2 {
			t.Errorf("trial %d: %q", i, a.Sets)
		}
		count["decade "+strconv.Itoa(int(math.Floor(math.Log10(lr))))]++
		count["n "+valueOf(a, "rollout.n")]++
		count["kind "+valueOf(a, "algo.kind")]++
	}
	// Each of 4 decades and 4 group sizes is expected 50 times, each algorithm 100 times: 25 is 4 σ below.
	for _, name := range []string{"decade -6", "decade -5", "decade -4", "decade -3", "n 2", "n 3", "n 4", "n 5", "kind ppo", "kind grpo"} {
		if count[name] < 25 {
			t.Errorf("%s was drawn %d times", name, count[name])
		}
	}
	want := []string{"train.optim.lr=" + valueOf(long[0], "train.optim.lr"), "compare.vary+=train.optim.lr"}
	if d := cmp.Diff(want, long[0].Sets[:2]); d != "" || !strings.HasPrefix(long[0].Label, "lr-") {
		t.Errorf("label %s, sets (-want +got):\n%s", long[0].Label, d)
	}
}

// Numbers of narrow ranges have as many digits as it takes to differ and to stay in the range.
func TestSearchNarrow(t *testing.T) {
	for text, longest := range map[string]int{ // characters
		"train.optim.lr=0.99..0.9999":            len("0.99123"),
		"train.optim.lr=0.9995..0.9999":          len("0.999512"),
		"train.optim.lr=0.12341..0.12344":        len("0.1234123"),
		"train.optim.lr=log:1.234e-6..1.239e-6":  len("1.23412e-06"),
		"train.optim.lr=-0.00001..0.00001":       len("-9.99e-06"),
		"train.optim.lr=1.0..1.0000000000000002": len("1.0000000000000002"),
		"train.optim.lr=log:1e-6..1e-2":          len("1.23e-06"),
	} {
		list := ranges(t, text)
		n := 100
		if strings.HasSuffix(text, "02") {
			n = 2 // it holds two numbers
		}
		arms, err := Search(list, n, 7)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, a := range arms {
			v, err := strconv.ParseFloat(valueOf(a, "train.optim.lr"), 64)
			if err != nil || v < list[0].Low || v > list[0].High || len(valueOf(a, "train.optim.lr")) > longest {
				t.Errorf("%s: %q, %v", text, valueOf(a, "train.optim.lr"), err)
			}
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	if _, err := Search(ranges(t, "k=1..3"), 5, 0); err == nil || !strings.Contains(err.Error(), "about 3 different trials, not 5") {
		t.Errorf("five trials of three values: %v", err)
	}
	if _, err := Search(ranges(t, "k=1..3", "k=a,b"), 2, 0); err == nil || !strings.Contains(err.Error(), "searched twice") {
		t.Errorf("one key twice: %v", err)
	}
	if _, err := Search(ranges(t, "k=0.0..3"), MostArms+1, 0); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("too many: %v", err)
	}
}

// valueOf returns what an arm sets a key to; "" if it does not.
func valueOf(a Arm, key string) string {
	for _, set := range a.Sets {
		if v, ok := strings.CutPrefix(set, key+"="); ok {
			return v
		}
	}
	return ""
}
