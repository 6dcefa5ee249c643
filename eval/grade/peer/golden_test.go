package peer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenCase is one recorded call of a published grader; the folder's README has the
// schema.
type goldenCase struct {
	Name     string
	Function string
	Source   string
	Inputs   map[string]any
	Params   map[string]any
	Outputs  map[string]any
}

func (c goldenCase) input(name string) string {
	s, _ := c.Inputs[name].(string)
	return s
}

// goldenCases reads a family from EXP_GOLDEN or, by default, shared/data/golden beside
// the repository; the test is skipped where it is absent.
func goldenCases(t *testing.T, family string) []goldenCase {
	t.Helper()
	dir := os.Getenv("EXP_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data", "golden")
	}
	data, err := os.ReadFile(filepath.Join(dir, family+".json"))
	if err != nil {
		t.Skipf("no golden vectors: %v", err)
	}
	var file struct{ Cases []goldenCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

// targets is the ground truth of search-R1: a string or a list.
func (c goldenCase) targets() []string {
	truth, _ := c.Inputs["ground_truth"].(map[string]any)
	switch v := truth["target"].(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, s := range v {
			list = append(list, s.(string))
		}
		return list
	}
	return nil
}

func TestRewardScorers(t *testing.T) {
	checked := map[string]int{}
	for _, c := range goldenCases(t, "reward_scorers") {
		original := strings.HasPrefix(c.Source, "FO:")
		s, gold := c.input("solution_str"), c.input("ground_truth")
		checked[c.Function]++
		switch c.Function {
		case "math_dapo.compute_score":
			grader := MathDAPO
			switch {
			case original:
				grader = MathDAPOOriginal
			case c.Params["strict_box_verify"] == true:
				grader = MathDAPOBox
			}
			v := grader(gold, s)
			want := c.Outputs["result"].(map[string]any)
			if v.Correct != want["acc"] {
				t.Errorf("%s: %v, want %v", c.Name, v.Correct, want["acc"])
			}
			if pred, _ := want["pred"].(string); !original && v.Extracted != pred {
				t.Errorf("%s: answer %q, want %q", c.Name, v.Extracted, pred)
			}
		case "math_dapo.normalize_final_answer":
			if got := NormalizeDAPO(c.input("final_answer")); got != c.Outputs["result"] {
				t.Errorf("%s: %q, want %q", c.Name, got, c.Outputs["result"])
			}
		case "math_reward.compute_score":
			if v := MathReward(gold, s); v.Correct != (c.Outputs["result"] == 1.0) {
				t.Errorf("%s: %+v, want %v", c.Name, v, c.Outputs["result"])
			}
			box, _ := LastBoxedOnly(s)
			if want, _ := c.Outputs["last_boxed_only_string"].(string); box != want {
				t.Errorf("%s: box %q, want %q", c.Name, box, want)
			}
		case "math_reward.is_equiv":
			a, b := c.input("str1"), c.input("str2")
			if got := IsEquiv(a, b); got != c.Outputs["result"] {
				t.Errorf("%s: %v, want %v", c.Name, got, c.Outputs["result"])
			}
			got, err := StripString(a)
			if want, ok := c.Outputs["strip_1"].(string); ok != (err == nil) || got != want {
				t.Errorf("%s: %q, %v, want %v", c.Name, got, err, c.Outputs["strip_1"])
			}
		case "gsm8k.compute_score":
			grader := GSM8KStrict
			switch {
			case original:
				grader = GSM8KFirst
			case c.Params["method"] == "flexible":
				grader = GSM8KFlexible
			}
			v := grader(gold, s)
			if v.Correct != (c.Outputs["result"] == 1.0) {
				t.Errorf("%s: %+v, want %v", c.Name, v, c.Outputs["result"])
			}
			if want, ok := c.Outputs["extracted"].(string); ok && v.Extracted != want {
				t.Errorf("%s: answer %q, want %q", c.Name, v.Extracted, want)
			}
		case "search_r1_like_qa_em.compute_score":
			got := SearchR1Score(c.targets(), s, c.Params["score"].(float64), c.Params["format_score"].(float64))
			if got != c.Outputs["result"] {
				t.Errorf("%s: %v, want %v", c.Name, got, c.Outputs["result"])
			}
			want, _ := c.Outputs["extracted"].(string)
			if got := SearchR1(c.targets(), s).Extracted; got != want {
				t.Errorf("%s: answer %q, want %q", c.Name, got, want)
			}
			if got := NormalizeEM(want); got != c.Outputs["normalized"] {
				t.Errorf("%s: normalised %q, want %q", c.Name, got, c.Outputs["normalized"])
			}
		case "default_compute_score": // TestDefaultScore
			checked[c.Function]--
		default:
			t.Errorf("%s: unknown function %s", c.Name, c.Function)
		}
	}
	t.Logf("checked: %v", checked)
}

func TestSymbolicGraders(t *testing.T) {
	for _, c := range goldenCases(t, "symbolic_math_graders") {
		answer, gold := c.input("given_answer"), c.input("ground_truth")
		switch c.Function {
		case "grade_answer_mathd":
			if got := PrimeMathd(answer, gold); got != c.Outputs["result"] {
				t.Errorf("%s: %v, want %v", c.Name, got, c.Outputs["result"])
			}
		case "math_normalize.normalize_answer":
			if got := PrimeNormalize(c.input("answer")); got != c.Outputs["result"] {
				t.Errorf("%s: %q, want %q", c.Name, got, c.Outputs["result"])
			}
		case "grade_answer_sympy":
			if got := PrimeSymbolic(answer, gold); got != c.Outputs["result"] {
				t.Errorf("%s: %v, want %v", c.Name, got, c.Outputs["result"])
			}
			if got := primeSymbolicText(answer); got != c.Outputs["normalized_given"] {
				t.Errorf("%s: normalised %q, want %q", c.Name, got, c.Outputs["normalized_given"])
			}
		case "extract_answer/grade_answer_verl":
			v := Prime(gold, c.input("passage"))
			if v.Correct != c.Outputs["grade"] {
				t.Errorf("%s: %+v, want %v", c.Name, v, c.Outputs["grade"])
			}
			if want, _ := c.Outputs["extracted"].(string); v.Extracted != want {
				t.Errorf("%s: answer %q, want %q", c.Name, v.Extracted, want)
			}
		default:
			t.Errorf("%s: unknown function %s", c.Name, c.Function)
		}
	}
}
