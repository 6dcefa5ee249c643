package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAxis(t *testing.T) {
	for text, want := range map[string][]string{
		"algo.flowrl.beta=1,5,15":     {"1", "5", "15"},
		"algo.kind= ppo , grpo":       {"ppo", "grpo"},
		"k=[1,2],[3]":                 {"[1,2]", "[3]"},
		`k={a: 1, b: [2, 3]},"x,y",'`: nil,
		`k={a: 1, b: [2, 3]},"x,y"`:   {"{a: 1, b: [2, 3]}", `"x,y"`},
		`k="a\",b",c`:                 {`"a\",b"`, "c"},
		"k=1":                         {"1"},
	} {
		a, err := ParseAxis(text)
		if want == nil {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if err != nil || !slices.Equal(a.Values, want) {
			t.Errorf("%s: %q, %v; want %q", text, a.Values, err, want)
		}
	}
	for text, want := range map[string]string{
		"beta":     "KEY=VALUE",
		"=1,2":     "KEY=VALUE",
		"k+=1,2":   "appends",
		"seed=1,2": "--seeds 1,2",
		"name=a,b": "named by",
		"k=1,,2":   "value 2 is empty",
		"k=":       "value 1 is empty",
		"k=1,2,1":  "stands twice",
		"k=[1,2":   "lacks a ]",
		"k=1],2":   "a ] too many",
	} {
		if _, err := ParseAxis(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func axes(t *testing.T, texts ...string) []Axis {
	t.Helper()
	var list []Axis
	for _, text := range texts {
		a, err := ParseAxis(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

func TestGrid(t *testing.T) {
	arms, err := Grid(axes(t, "algo.flowrl.beta=1,5", "train.optim.lr=1e-6,3e-6"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range arms {
		got = append(got, a.Label)
	}
	want := []string{"beta-1_lr-1e-6", "beta-1_lr-3e-6", "beta-5_lr-1e-6", "beta-5_lr-3e-6"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	sets := []string{"algo.flowrl.beta=5", "compare.vary+=algo.flowrl.beta", "train.optim.lr=1e-6",
		"compare.vary+=train.optim.lr"}
	if d := cmp.Diff(sets, arms[2].Sets); d != "" {
		t.Errorf("sets (-want +got):\n%s", d)
	}
	if none, err := Grid(nil); err != nil || len(none) != 1 || none[0].Label != "" || len(none[0].Sets) != 0 {
		t.Errorf("no axes: %v, %v; want one arm as configured", none, err)
	}
}

func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		axes []string
		want []string
	}{
		{[]string{"train.optim.lr=1", "train.critic.lr=2"}, []string{"optim.lr-1_critic.lr-2"}},
		{[]string{"algo.kind=ppo,flowrl"}, []string{"algo.kind-ppo", "algo.kind-flowrl"}},
		{[]string{"a.k=[1, 2],[1 2]"}, []string{"k-1--2", "k-1-2"}},
		{[]string{`a.k="",ü`}, []string{"k-none", "k-none.2"}},
		{[]string{`a.k="a b",a-b,a-b.2`}, []string{"k-a-b", "k-a-b.2", "k-a-b.2.2"}},
		{[]string{"a.k=1e+6,1e-6,+2,-0.5,0.5,a+b"}, []string{"k-1e6", "k-1e-6", "k-2", "k--0.5", "k-0.5", "k-a-b"}},
		{[]string{"lr=1", "train.lr=2"}, []string{"lr-1_train.lr-2"}},
	} {
		arms, err := Grid(axes(t, tt.axes...))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range arms {
			got = append(got, a.Label)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.axes, got, tt.want)
		}
	}
}

func TestGridRefuses(t *testing.T) {
	if _, err := Grid(axes(t, "k=1,2", "k=3")); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("one key twice: %v", err)
	}
	long := "0"
	for i := range 32 {
		long += "," + strings.Repeat("1", i+1)
	}
	if _, err := Grid(axes(t, "a="+long, "b="+long)); err == nil || !strings.Contains(err.Error(), "1000") {
		t.Errorf("1089 arms: %v", err)
	}
}
