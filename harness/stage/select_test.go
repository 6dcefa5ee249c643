package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"exp/experiments/blob"
	"exp/train"
	"exp/train/rollout"
)

// selecting is an environment of stage select with problems p0, p1 … of these rates; NaN stands for null.
func selecting(t *testing.T, rates []any, sets ...string) (*Env, Inputs) {
	t.Helper()
	e := &Env{Config: load(t, "smoke_cpu.yaml", append([]string{"data.pass_rate.samples=4"}, sets...)...),
		Blobs: blob.At(t.TempDir())}
	var problems, lines strings.Builder
	for i, x := range rates {
		fmt.Fprintf(&problems, `{"id": "p%d", "prompt": "1,2=3\n", "data": {"numbers": [1, 2], "target": 3}}`+"\n", i)
		fmt.Fprintf(&lines, `{"problem": "p%d", "rate": %s}`+"\n", i, must(json.Marshal(x)))
	}
	p, err := e.put(RoleTrain, "problems", []byte(problems.String()))
	q, err2 := e.put(RolePassRates, "pass rates", []byte(lines.String()))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return e, Inputs{RoleTrain: p.Digest, RolePassRates: q.Digest}
}

// Both ends of the range belong to it, problems keep their order, and those without a rate go.
func TestSelect(t *testing.T) {
	rates := []any{0.75, 0, 0.25, nil, 1, 0.5, 0.125, 0.75}
	e, in := selecting(t, rates, "data.pass_rate.min=0.25", "data.pass_rate.max=0.75",
		"train={prompts_per_step: 4, prompts_per_update: 4}")
	var events []string
	e.Hooks.Event = func(kind, text string) { events = append(events, kind+": "+text) }
	out, err := selectProblems(e, in)
	if err != nil {
		t.Fatal(err)
	}
	list, err := e.problemsOf(Inputs{RoleTrain: out.Outputs[0].Digest}, RoleTrain)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	if got := strings.Join(ids, " "); got != "p0 p2 p5 p7" {
		t.Errorf("kept %s", got)
	}
	s := out.Summary.(Selection)
	// (0.75+0+0.25+1+0.5+0.125+0.75)/7 = 3.375/7
	if s.Problems != 8 || s.Kept != 4 || s.Below != 2 || s.Above != 1 || s.Unrated != 1 || s.Never != 1 ||
		s.Always != 1 || s.Mean != 3.375/7 {
		t.Errorf("%+v", s)
	}
	var parts []string
	for _, p := range s.Histogram {
		if p.Problems > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d/%d", p.Rates, p.Kept, p.Problems))
		}
	}
	if got := strings.Join(parts, ", "); got != "0: 0/1, 0.1 to 0.2: 0/1, 0.2 to 0.3: 1/1, 0.5 to 0.6: 1/1, "+
		"0.7 to 0.8: 2/2, 1: 0/1" {
		t.Errorf("histogram %s", got)
	}
	if len(events) != 1 || events[0] != "no-pass-rate: data.pass_rate: 1 problem of 8 left out without a pass "+
		"rate: no completion of theirs has a verdict" {
		t.Errorf("events %q", events)
	}
}

// Tenths lie where decimal numbers say: k/10 begins part k, whatever its float64 times ten is.
func TestRateBins(t *testing.T) {
	for k := range 11 {
		want := k + 1
		if k == 0 {
			want = 0
		}
		if got := binOf(float64(k) / 10); got != want {
			t.Errorf("%d/10 is in part %d, want %d", k, got, want)
		}
	}
	for rate, want := range map[float64]string{1e-9: "0 to 0.1", 0.0999: "0 to 0.1", 0.125: "0.1 to 0.2",
		0.999: "0.9 to 1", 1: "1", 0: "0"} {
		if got := binName(binOf(rate)); got != want {
			t.Errorf("%v is in %q, want %q", rate, got, want)
		}
	}
}

// Too few problems are an error that shows where they lie, and says what would help.
func TestFewProblems(t *testing.T) {
	never, always := []any{0, 0, 0, 0, 0, 0.5, 0.25, nil}, []any{1, 1, 1, 1, 1, 0.5, 0.25, 0}
	some := []any{0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.5}
	for _, tt := range []struct {
		rates []any
		sets  []string
		want  string
		hint  string
	}{
		{never, nil, `2 of 8 training problems have a pass rate from data.pass_rate.min (0.001) to max (0.999); ` +
			`train.prompts_per_step asks for 8
  pass rate    problems
  0                   5
  0.2 to 0.3          1  in the range
  0.5 to 0.6          1  in the range
  unknown             1`, "most problems are never solved: sample more"},
		{always, nil, "  1                   5", "most problems are always solved: take harder ones"},
		{some, []string{"data.pass_rate.min=0.5"}, "  0.2 to 0.3          4\n" +
			"  0.5 to 0.6          1  in the range\n  0.7 to 0.8          3  in the range",
			"widen data.pass_rate.min"},
		{some, []string{"data.pass_rate.min=0.5", "train={prompts_per_step: 5, prompts_per_update: 5}"},
			"4 of 8 training problems", "widen data.pass_rate.min"},
	} {
		e, in := selecting(t, tt.rates, tt.sets...)
		_, err := selectProblems(e, in)
		var few *FewProblemsError
		if !errors.As(err, &few) || !strings.Contains(err.Error(), tt.want) ||
			!strings.HasPrefix(few.Hint(), tt.hint) || few.ExitCode() != 2 {
			t.Errorf("%v: got\n%v\nwant\n%s\nhint %q", tt.rates, err, tt.want, few.Hint())
		}
	}
	e, in := selecting(t, some)
	_, other := selecting(t, some[:7])
	if _, err := selectProblems(e, Inputs{RoleTrain: in[RoleTrain], RolePassRates: other[RolePassRates]}); err == nil {
		t.Error("rates of other problems are taken")
	}
}

// A problem's rate is of completions with a verdict; a problem without any has no rate.
func TestPassRateOf(t *testing.T) {
	for _, tt := range []struct {
		rating train.Rating
		want   string
	}{
		{train.Rating{Problem: "p", Samples: 4, Graded: 3, Correct: 1, Reward: 1.5, Truncated: 2, Tokens: 14},
			`{"problem":"p","samples":4,"graded":3,"correct":1,"truncated":2,"tokens":14,"rate":0.3333333333333333}`},
		{train.Rating{Problem: "p", Samples: 4, Tokens: 9}, `{"problem":"p","samples":4,"tokens":9,"rate":null}`},
	} {
		if got := string(must(json.Marshal(passRateOf(tt.rating, false)))); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	if x := passRateOf(train.Rating{Problem: "p", Samples: 2, Graded: 2, Reward: 1.5}, true); *x.Score != 0.75 ||
		*x.Rate != 0 {
		t.Errorf("score %v, rate %v", *x.Score, *x.Rate)
	}
}

// Ratings are kept line by line: a torn line is rated again, and lines of other problems or settings are not used.
func TestRateProgress(t *testing.T) {
	problems := []rollout.Problem{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	p := rateProgress{t.TempDir() + "/ckpt"}
	read := func(samples int, fresh bool) int {
		t.Helper()
		list, err := p.read(problems, samples, fresh)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	half := 0.5
	line := func(id string) passRate { return passRate{Problem: id, Samples: 2, Graded: 2, Correct: 1, Rate: &half} }
	if n := read(2, false); n != 0 {
		t.Errorf("%d before the first", n)
	}
	if err := p.add([]passRate{line("a"), line("b")}); err != nil {
		t.Fatal(err)
	}
	if n := read(2, false); n != 2 {
		t.Errorf("%d of 2", n)
	}
	f, err := os.OpenFile(p.path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"problem": "c", "sam`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if n := read(2, false); n != 2 {
		t.Errorf("%d after a torn line", n)
	}
	if err := p.add([]passRate{line("c")}); err != nil {
		t.Fatal(err)
	}
	if n := read(2, false); n != 3 {
		t.Errorf("%d of 3 after the torn line was cut off", n)
	}
	if n := read(4, false); n != 0 {
		t.Errorf("%d with another number of completions", n)
	}
	if err := p.add([]passRate{line("b")}); err != nil {
		t.Fatal(err)
	}
	if n := read(2, false); n != 0 {
		t.Errorf("%d that begin with another problem", n)
	}
	if err := p.add([]passRate{line("a")}); err != nil {
		t.Fatal(err)
	}
	if n := read(2, true); n != 0 {
		t.Errorf("%d when begun anew", n)
	}
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if list, err := (rateProgress{}).read(problems, 2, false); list != nil || err != nil ||
		(rateProgress{}).add([]passRate{line("a")}) != nil {
		t.Error("a verification keeps something")
	}
}

// A call has a step's completions, or fills the samplers of all ranks.
func TestRatedTogether(t *testing.T) {
	for _, tt := range []struct {
		sets  string
		ranks int
		want  int
	}{
		{"rollout.max_sequences=8", 1, 8},   // 8 problems of 4 completions are a step: 32/4
		{"rollout.max_sequences=64", 1, 16}, // 64/4
		{"rollout.max_sequences=64", 3, 48},
		{"data.pass_rate.samples=500", 1, 1},
	} {
		c := &load(t, "smoke_cpu.yaml", "data.pass_rate.samples=4", tt.sets).Run
		if got := RatedTogether(c, tt.ranks); got != tt.want {
			t.Errorf("%s, %d ranks: %d, want %d", tt.sets, tt.ranks, got, tt.want)
		}
	}
	c := &load(t, "smoke_cpu.yaml", "data.pass_rate.samples=4", "rollout.max_sequences=64",
		"compute.tensor_parallel=2").Run
	if got := RatingCalls(c, 6)[0]; got.Requests != 16 || got.Samples != 4 || got.New != c.Rollout.MaxNewTokens {
		t.Errorf("three groups of 48 problems: %+v", got)
	}
}
