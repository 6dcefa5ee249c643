package eval

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSkeletons(t *testing.T) {
	tests := []struct {
		name, in string
		skeleton func(string) []string
		want     string
	}{
		{"markup", "**Step 1.** So $x = \\frac{12}{5}$", textSkeleton, "step 1 . so x = \\ frac 12 5"},
		{"numbers stay", "3*41+x2", textSkeleton, "3 * 41 + x2"},
		{"names by place", "def f(a, b):\n  return a + b * a  # sum", codeSkeleton, "def n0 ( n1 , n2 ) : return n1 + n2 * n1"},
		{"literals", "print('it\\'s', \"# no\")", codeSkeleton, "n0 ( \" \" , \" \" )"},
		{"nothing", " \n", textSkeleton, ""},
	}
	for _, tt := range tests {
		if got := strings.Join(tt.skeleton(tt.in), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLastFence(t *testing.T) {
	tests := []struct {
		in, want string
		ok       bool
	}{
		{"no code", "", false},
		{"```python\nx\n", "", false}, // not closed
		{"a ```python\nx = 1\n``` b", "x = 1\n", true},
		{"```\na\n``` ```\nb\n```", "b\n", true},
		{"```\na\n``` and ```open\nc", "a\n", true},
	}
	for _, tt := range tests {
		if got, ok := lastFence(tt.in); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %q, %v, want %q, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestSolutionGroups(t *testing.T) {
	renamed := "```python\ndef g(x, y):\n    total = x + y\n    return total * 2\n```"
	program := "```python\ndef f(a, b):\n    s = a + b\n    return s * 2\n```"
	other := "```python\nimport sys\nprint(max(int(v) for v in sys.stdin))\n```"
	tests := []struct {
		name   string
		texts  []string
		groups int
	}{
		{"renamed program", []string{program, renamed, other}, 2},
		{"the same with other words at the end", []string{
			"we add two and three and four to get nine so the answer is 9",
			"we add two and three and four to get nine so the answer equals 9",
			"multiply everything by seven first, then subtract the remainder of it"}, 2},
		{"another order", []string{"3*4+2", "2+3*4"}, 2},
		{"spacing and dollars", []string{"$3 * 4 + 2$", "3*4+2"}, 1},
		{"nothing", nil, 0},
	}
	for _, tt := range tests {
		if got, n := solutionGroups(tt.texts); n != tt.groups {
			t.Errorf("%s: %d groups %v, want %d", tt.name, n, got, tt.groups)
		}
	}
}

// Of 1 2 3, 1 2 3 and 4: distinct 1-grams 4/7, 2-grams 2/4, 3-grams 1/2.
func TestNewTexts(t *testing.T) {
	sample := func(text string, tokens ...int32) (s Sample) {
		s.Completion.Text, s.Completion.Tokens = text, tokens
		return s
	}
	samples := []Sample{sample("a b c", 1, 2, 3), sample("a b c", 1, 2, 3), sample("d", 4)}
	want := &Texts{Distinct: [4]float64{4.0 / 7, 0.5, 0.5, 0}, SelfBLEU: 2.0 / 3,
		Clusters: math.Exp(2.0/3*math.Log(1.5) + 1.0/3*math.Log(3)), CorrectClusters: 2}
	got := newTexts(samples, []int{0, 1, 2}, []bool{true, false, true})
	if d := cmp.Diff(want, got, floatsTo(1e-12)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := range samples {
		samples[i].Completion.Tokens = nil // words suffice
	}
	if d := cmp.Diff(want, newTexts(samples, []int{0, 1, 2}, []bool{true, false, true}), floatsTo(1e-12)); d != "" {
		t.Errorf("without tokens (-want +got):\n%s", d)
	}
	if got := newTexts(samples, []int{0}, []bool{true}); got != nil {
		t.Errorf("one sample: %+v, want nil", got)
	}
}
