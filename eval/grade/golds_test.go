package grade

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"exp/eval/grade/extract"
)

// benchmarkGolds reads the different gold answers of MATH and OlympiadBench.
func benchmarkGolds(t *testing.T) []string {
	t.Helper()
	var golds []string
	seen := map[string]bool{"": true}
	for _, name := range []string{"math500.jsonl", "math_train.jsonl", "math_test.jsonl", "olympiadbench.jsonl"} {
		s := bufio.NewScanner(dataFile(t, "benchmarks", name))
		s.Buffer(nil, 1<<24)
		for s.Scan() {
			var r struct {
				Answer, Solution any
				Final            []string `json:"final_answer"`
			}
			if err := json.Unmarshal(s.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			gold, _ := r.Answer.(string)
			if solution, ok := r.Solution.(string); ok && gold == "" {
				gold, _ = extract.LastBox(solution)
			}
			if len(r.Final) > 0 {
				gold = r.Final[0]
			}
			if !seen[gold] {
				seen[gold] = true
				golds = append(golds, gold)
			}
		}
	}
	return golds
}

// TestFormsOfGolds: every gold answer equals itself in each form that models use.
func TestFormsOfGolds(t *testing.T) {
	golds := benchmarkGolds(t)
	for _, form := range []string{"Some reasoning 17.\nAnswer: %", "So.\nAnswer: $%$", "Thus $x=\\boxed{%}$. Done.",
		"The answer is \\(%\\).", "Hence\n\\[%\\]\nThe final answer is $%$. I hope it is correct.", "x\n#### %",
		"Answer: `%`", "**Answer:** %", "<think>3</think><answer>%</answer>"} {
		missed := 0
		for _, g := range golds {
			inner := g
			if strings.Contains(form, "$%") || strings.Contains(form, "(%") {
				inner = strings.Trim(g, "$")
			}
			if v := Response(g, strings.ReplaceAll(form, "%", inner)); !v.Correct {
				missed++
				t.Logf("%s: %q: %+v", form, g, v)
			}
		}
		if missed*500 > len(golds) {
			t.Errorf("%s: %d of %d are missed, at most 1 in 500", form, missed, len(golds))
		}
	}
}

// TestNearMisses: a gold answer with one digit, sign or variable changed is wrong.
func TestNearMisses(t *testing.T) {
	golds := benchmarkGolds(t)
	tried, accepted := 0, 0
	for _, g := range golds {
		g = goldAnswer(g)
		for _, miss := range nearMisses(g) {
			tried++
			if v := Answer(g, miss); v.Correct {
				accepted++
				t.Logf("gold %q, %q: %+v", g, miss, v)
			}
		}
	}
	t.Logf("%d of %d accepted", accepted, tried)
	if accepted*1000 > 3*tried {
		t.Errorf("%d of %d near misses are accepted, at most 0.3 %%", accepted, tried)
	}
}

// nearMisses changes one thing. Variables of matrices (\begin{pmatrix}) and of
// f(x) = … stay: their names are commands, or bound.
func nearMisses(g string) (list []string) {
	if k := strings.LastIndexAny(g, "123456789"); k >= 0 {
		list = append(list, g[:k]+string('1'+(g[k]-'0')%9)+g[k+1:])
	}
	if k := strings.IndexAny(g, "123456789"); k >= 0 {
		list = append(list, g[:k]+string('1'+(g[k]-'0')%9)+g[k+1:], g[:k]+"7"+g[k:])
	}
	for _, r := range [][2]string{{"\\pi", ""}, {"+", "-"}, {"x", "w"}, {"\\sqrt", ""}, {"^", "+"}, {"[", "("}} {
		if strings.Contains(g, r[0]) && !strings.Contains(g, "\\text") && !(r[0] == "x" && strings.ContainsAny(g,
			"&=m")) {
			list = append(list, strings.Replace(g, r[0], r[1], 1))
		}
	}
	return list
}
