package peer

import (
	"encoding/json"
	"exp/eval/grade"
	"fmt"
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

// goldenCases reads a family from EXP_GOLDEN or, by default, shared/data/golden next to the repository; the
// test is skipped if the folder is missing.
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

func TestGoldenRewardScorers(t *testing.T) {
	for _, c := range goldenCases(t, "reward_scorers") {
		if c.Function == "default_compute_score" {
			continue // TestGoldenDefaultScore
		}
		t.Run(c.Name, func(t *testing.T) {
			original := strings.HasPrefix(c.Source, "FO:")
			s, gold := c.input("solution_str"), c.input("ground_truth")
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
				score := -1.0
				if v.Correct {
					score = 1
				}
				if v.Correct != want["acc"] || score != want["score"] {
					t.Errorf("%v, want %v", v.Correct, want["acc"])
				}
				if pred, _ := want["pred"].(string); !original && v.Extracted != pred {
					t.Errorf("answer %q, want %q", v.Extracted, pred)
				}
			case "math_dapo.normalize_final_answer":
				if got := NormalizeDAPO(c.input("final_answer")); got != c.Outputs["result"] {
					t.Errorf("%q, want %q", got, c.Outputs["result"])
				}
			case "math_reward.compute_score":
				if v := MathReward(gold, s); v.Correct != (c.Outputs["result"] == 1.0) {
					t.Errorf("%+v, want %v", v, c.Outputs["result"])
				}
				box, _ := LastBoxedOnly(s)
				if want, _ := c.Outputs["last_boxed_only_string"].(string); box != want {
					t.Errorf("box %q, want %q", box, want)
				}
			case "math_reward.is_equiv":
				a, b := c.input("str1"), c.input("str2")
				if got := IsEquiv(a, b); got != c.Outputs["result"] {
					t.Errorf("%v, want %v", got, c.Outputs["result"])
				}
				for name, s := range map[string]string{"strip_1": a, "strip_2": b} {
					got, err := StripString(s)
					if want, ok := c.Outputs[name].(string); ok != (err == nil) || got != want {
						t.Errorf("%s: %q, %v, want %v", name, got, err, c.Outputs[name])
					}
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
					t.Errorf("%+v, want %v", v, c.Outputs["result"])
				}
				if want, ok := c.Outputs["extracted"].(string); ok && v.Extracted != want {
					t.Errorf("answer %q, want %q", v.Extracted, want)
				}
			case "search_r1_like_qa_em.compute_score":
				got := SearchR1Score(c.targets(), s, c.Params["score"].(float64), c.Params["format_score"].(float64))
				if got != c.Outputs["result"] {
					t.Errorf("%v, want %v", got, c.Outputs["result"])
				}
				if got := SearchR1Within(c.targets(), s); got.Correct != (c.Outputs["subem_result"] == 1.0) {
					t.Errorf("%+v, want %v", got, c.Outputs["subem_result"])
				}
				want, _ := c.Outputs["extracted"].(string)
				if got := SearchR1(c.targets(), s).Extracted; got != want {
					t.Errorf("answer %q, want %q", got, want)
				}
				if got := NormalizeEM(want); got != c.Outputs["normalized"] {
					t.Errorf("normalised %q, want %q", got, c.Outputs["normalized"])
				}
			default:
				t.Errorf("unknown function %s", c.Function)
			}
		})
	}
}

func TestGoldenSymbolicGraders(t *testing.T) {
	for _, c := range goldenCases(t, "symbolic_math_graders") {
		t.Run(c.Name, func(t *testing.T) {
			answer, gold := c.input("given_answer"), c.input("ground_truth")
			switch c.Function {
			case "grade_answer_mathd":
				for name, s := range map[string]string{"normalized_given": answer, "normalized_truth": gold} {
					if got := PrimeNormalize(s); got != c.Outputs[name] {
						t.Errorf("%s: %q, want %q", name, got, c.Outputs[name])
					}
				}
				if got := PrimeMathd(answer, gold); got != c.Outputs["result"] {
					t.Errorf("%v, want %v", got, c.Outputs["result"])
				}
			case "math_normalize.normalize_answer":
				if got := PrimeNormalize(c.input("answer")); got != c.Outputs["result"] {
					t.Errorf("%q, want %q", got, c.Outputs["result"])
				}
			case "grade_answer_sympy":
				parts := []any{}
				for _, s := range primeTuple(primeSymbolicText(answer)) {
					parts = append(parts, s)
				}
				if want := c.Outputs["split_given"]; fmt.Sprint(parts) != fmt.Sprint(want) {
					t.Errorf("split %v, want %v", parts, want)
				}
				if got := PrimeSymbolic(answer, gold); got != c.Outputs["result"] {
					t.Errorf("%v, want %v", got, c.Outputs["result"])
				}
				for name, s := range map[string]string{"normalized_given": answer, "normalized_truth": gold} {
					if got := primeSymbolicText(s); got != c.Outputs[name] {
						t.Errorf("%s: %q, want %q", name, got, c.Outputs[name])
					}
				}
			case "extract_answer/grade_answer_verl":
				v := Prime(gold, c.input("passage"))
				if v.Correct != c.Outputs["grade"] {
					t.Errorf("%+v, want %v", v, c.Outputs["grade"])
				}
				if want, _ := c.Outputs["extracted"].(string); v.Extracted != want {
					t.Errorf("answer %q, want %q", v.Extracted, want)
				}
			default:
				t.Errorf("unknown function %s", c.Function)
			}
		})
	}
}

// GSM8KFirst is the scorer as released with FlowRL: the first mark in the whole response.
func GSM8KFirst(gold, response string) grade.Verdict {
	m := gsm8kMark.FindStringSubmatch(response)
	if m == nil {
		return verdict(false, "", "no #### number")
	}
	return gsm8k(gold, stripMoney(m[1]))
}

// SearchR1Within is compute_score_subem of the same file: the last answer contains one of the targets, both
// normalised. It is lenient: "them" is in "Anthem".
func SearchR1Within(targets []string, response string) grade.Verdict {
	v := SearchR1(targets, response)
	if v.Reason == "no <answer>" {
		return v
	}
	norm := NormalizeEM(v.Extracted)
	for _, t := range targets {
		if strings.Contains(norm, NormalizeEM(t)) {
			return verdict(true, v.Extracted, "contains the answer")
		}
	}
	return verdict(false, v.Extracted, "does not contain the answer")
}
