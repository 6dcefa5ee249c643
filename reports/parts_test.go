package reports

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/store"
	"exp/reports/compare"
	"exp/reports/figure"
)

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{fixed(-0.0004, 3), "0.000"},
		{fixed(-0.5, 2), "−0.50"},
		{fixed(math.NaN(), 3), "–"},
		{fixed(math.Inf(-1), 3), "−∞"},
		{signed(0.25, 2), "+0.25"},
		{signed(0.001, 2), "0.00"},
		{signed(-1, 1), "−1.0"},
		{listed([]string{"a", "b", "c"}), "a, b and c"},
		{slug("countdown/test@start"), "countdown-test-start"},
		{slug("‖"), "suite"},
		{pText(0.0009), "< 0.001"}, // as exp compare prints it
		{pText(0.001), "0.001"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestEscapeMD(t *testing.T) {
	for text, want := range map[string]string{
		"train/rollout_probs":  "train/rollout_probs",
		"_x_ *y* [z](u) <b> `": `\_x\_ \*y\* \[z\](u) \<b> \` + "`",
		"two\nlines":           "two lines",
	} {
		if got := escapeMD(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"a": "`a`", "a`b": "`` a`b ``", "a\nb": "`a⏎b`", " ": "*(empty)*"} {
		if got := codeSpan(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestMarkdownLine(t *testing.T) {
	m := &markdownWriter{}
	for _, tt := range []struct {
		l    line
		want string
	}{
		{line{{Text: "a"}, styled(strong, " is better than "), {Text: "b"}}, "a **is better than** b"},
		{text("# no heading #1"), `\# no heading #1`},
		{text("- no list"), `\- no list`},
		{line{styled(mono, "a|b")}, "`a|b`"},
		{line{{Text: "file", Link: "f.svg"}}, "[file](f.svg)"},
	} {
		if got := m.opening(tt.l); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got, want := m.cell(line{styled(mono, "a|b"), {Text: "|"}}), "`a\\|b`\\|"; got != want {
		t.Errorf("cell: got %q, want %q", got, want)
	}
}

// A page shows PNG or SVG, and only links to a PDF.
func TestMarkdownFigure(t *testing.T) {
	f := numbered{figure.Figure{Name: "kl", Alt: "alt"}, 3}
	for formats, want := range map[string]string{"pdf": "", "svg pdf": "![alt](figures/03-kl.svg)",
		"svg png pdf": "![alt](figures/03-kl.png)"} {
		m := &markdownWriter{figures: strings.Fields(formats)}
		m.figure(f)
		image, _, _ := strings.Cut(m.String(), "\n")
		if !strings.HasPrefix(image, want) || want == "" && strings.Contains(m.String(), "![") ||
			!strings.Contains(m.String(), "[PDF](figures/03-kl.pdf)") {
			t.Errorf("%s: %s", formats, m.String())
		}
	}
}

func TestVisible(t *testing.T) {
	if got, want := Visible("a\x00b\xffc\u202ed\n\te"), "a\\u0000b\\xffc\\u202ed\n\te"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func scored(name string, correct ...int) *arm {
	r := &run{scores: map[string][]item{}}
	for i, c := range correct {
		r.scores["test"] = append(r.scores["test"], item{string(rune('a' + i)), 4, c})
	}
	return &arm{Name: name, Runs: []*run{r}}
}

func TestPicks(t *testing.T) {
	ids := func(list []pick) string {
		s := ""
		for _, p := range list {
			s += p.Problem
		}
		return s
	}
	// Differences ×4: a 4, b 4, c 0, d −2, e 1, f −4, g −4.
	x, y := scored("x", 4, 4, 2, 0, 3, 0, 0), scored("y", 0, 0, 2, 2, 2, 4, 4)
	for _, tt := range []struct {
		name string
		arms []*arm
		want string
	}{
		{"largest lead and furthest behind, ties by the alphabet", []*arm{x, y}, "abfg"},
		{"the other way round", []*arm{y, x}, "fgab"},
		{"equal arms", []*arm{x, x}, ""},
		{"one arm: highest and lowest", []*arm{x}, "abfg"},
		{"one arm of three problems", []*arm{scored("z", 1, 2, 3)}, "cba"},
		{"one problem", []*arm{scored("z", 1)}, "a"},
		{"one side only", []*arm{scored("u", 4, 2), scored("v", 0, 0)}, "ab"},
	} {
		if got := ids(picks(tt.arms, len(tt.arms)-1, "test")); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The optimum of two outcomes with equal reference is softmax(beta·r): with beta 2
// and rewards 1 and 0, e²/(e²+1) = 0.8808.
func TestTarget(t *testing.T) {
	ref := math.Log(0.5)
	got := target([]outcome{{Reward: 1, RefLogProb: ref}, {Reward: 0, RefLogProb: ref}}, 2)
	if math.Abs(got[0]-0.880797) > 1e-6 || math.Abs(got[0]+got[1]-1) > 1e-12 {
		t.Errorf("got %v", got)
	}
	// A reference of 1:3 and no reward is the reference itself.
	got = target([]outcome{{RefLogProb: math.Log(0.25)}, {RefLogProb: math.Log(0.75)}}, 15)
	if math.Abs(got[0]-0.25) > 1e-12 {
		t.Errorf("got %v, want the reference", got)
	}
}

func TestSeedList(t *testing.T) {
	a := &arm{}
	for _, s := range []int64{0, 1, 2, 5, 7, 8} {
		a.Runs = append(a.Runs, &run{Run: store.Run{Seed: s}})
	}
	if got := seedList(a); got != "0-2,5,7-8" {
		t.Errorf("got %q", got)
	}
}

func TestDigitsFor(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   int
	}{{[]float64{0.5, 1}, 3}, {[]float64{0.5, 6.4}, 2}, {[]float64{12}, 1}, {[]float64{math.NaN(), math.Inf(1)}, 3}} {
		if got := digitsFor(tt.values...); got != tt.want {
			t.Errorf("%v: %d digits, want %d", tt.values, got, tt.want)
		}
	}
}

func TestFlatten(t *testing.T) {
	got, err := flatten(`{"a":{"b":1e-8,"c":[1,2]},"d":null}`)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{config: got}
	want := map[string]string{"a.b": "1e-8", "a.c": "[1,2]", "d": "null", "e": ""}
	for path, text := range want {
		if diff := cmp.Diff(text, r.setting(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestWithoutPrefix(t *testing.T) {
	tests := map[string]string{
		"countdown-ppo countdown-grpo":  "ppo grpo",
		"a-b-c a-b-d":                   "c d",
		"a-b a-b-c":                     "b b-c", // a- is shared; nothing may become empty
		"flowrl ppo":                    "flowrl ppo",
		"countdown-ppo countdowns-grpo": "countdown-ppo countdowns-grpo",
		"a- a-b":                        "a- a-b",
		"s_beta-1_lr-3 s_beta-15_lr-3":  "beta-1_lr-3 beta-15_lr-3",
		"run-1 run-2":                   "run-1 run-2",
	}
	for in, want := range tests {
		if got := strings.Join(withoutPrefix(strings.Fields(in)), " "); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// A server's page has the report's figures without style attributes, because its policy
// refuses them; a brief report has tables only.
func TestServedPage(t *testing.T) {
	s := newStudy(t)
	arms := []compare.Arm{{Runs: s.flowrl}, {Runs: s.ppo}}
	result, err := compare.Compare(context.Background(), s.db, arms, compare.Options{})
	s.must(err)
	full, err := New(context.Background(), Input{DB: s.db, Comparison: result})
	s.must(err)
	page, err := full.Page("/home")
	s.must(err)
	if text := string(page); strings.Contains(text, " style=") || strings.Contains(text, "\nstyle=") ||
		!strings.Contains(text, `fill="#0072B2"`) || !strings.Contains(text, `<a href="/home">`) || !strings.Contains(text, "<style>"+Style()) {
		t.Error("the page has style attributes, or lacks figures, the link home or the style sheet of Style")
	}
	brief, err := New(context.Background(), Input{DB: s.db, Comparison: result, Brief: true})
	s.must(err)
	sections, err := brief.Sections()
	s.must(err)
	var ids []string
	for _, sec := range sections {
		ids = append(ids, sec.ID)
		if strings.Contains(string(sec.HTML), "<svg") || strings.Contains(string(sec.HTML), "configs/") {
			t.Errorf("section %s has a figure or names a file", sec.ID)
		}
	}
	if want := []string{"summary", "comparability", "configuration", "results", "diversity"}; !slices.Equal(ids, want) {
		t.Errorf("sections %q, want %q", ids, want)
	}
	if got := string(presented([]byte(`<path style="fill:none;stroke:#fff"/>`))); got != `<path fill="none" stroke="#fff"/>` {
		t.Errorf("%s", got)
	}
}
