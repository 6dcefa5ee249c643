package peer

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// The recorded calls of default_compute_score: the grader and the score for each data source.
func TestGoldenDefaultScore(t *testing.T) {
	n := 0
	for _, c := range goldenCases(t, "reward_scorers") {
		if c.Function != "default_compute_score" {
			continue
		}
		n++
		t.Run(c.Name, func(t *testing.T) {
			golds := c.targets()
			if golds == nil {
				golds = []string{c.input("ground_truth")}
			}
			v, score, err := DefaultScore(c.input("data_source"), golds, c.input("solution_str"))
			switch want := c.Outputs["result"].(type) {
			case float64:
				if err != nil || score != want {
					t.Errorf("score %v, %v; want %v", score, err, want)
				}
			case map[string]any:
				if raises, ok := want["raises"]; ok {
					if !errors.Is(err, ErrNoRoute) {
						t.Errorf("score %v, %v; want %v", score, err, raises)
					}
					return
				}
				pred, _ := want["pred"].(string)
				if err != nil || score != want["score"] || v.Correct != want["acc"] || v.Extracted != pred {
					t.Errorf("%+v, score %v, %v; want %v", v, score, err, want)
				}
			default:
				t.Errorf("unexpected kind of grader %v", want)
			}
		})
	}
	if n != 45 {
		t.Errorf("%d cases, not 45", n)
	}
}

// Every route leads to a grader that exists.
func TestRoutes(t *testing.T) {
	for source, want := range map[string]string{
		"openai/gsm8k": "gsm8k_strict", "HuggingFaceH4/MATH-500": "math_reward", "math_dapo": "math_dapo", "aime2024": "math_dapo",
		"numina_olympiads": "prime_math", "searchR1_nq": "search_r1_em",
		"codeforces": "", "hiyouga/geometry3k": "geo3k", "searchR1_": "", "AIME": "", "": "",
	} {
		name, err := Route(source)
		if name != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", source, name, err)
		}
		if _, known := ByName(name); want != "" && known != nil {
			t.Error(known)
		}
		listed := slices.ContainsFunc(Sources(), func(s string) bool {
			start, open := strings.CutSuffix(s, "*")
			return s == source || open && strings.HasPrefix(source, start)
		})
		if listed != (want != "") {
			t.Errorf("%q is listed: %v", source, listed)
		}
	}
	for _, source := range Sources() {
		if _, err := Route(source); err != nil {
			t.Error(err)
		}
	}
}

// What verl's scorers do with rare characters, found by comparing with verl 0.9.1 on random texts.
func TestRareCharacters(t *testing.T) {
	if v := MathDAPO("", "so \\boxed{} it is"); !v.Correct || v.Extracted != "" {
		t.Errorf("an empty box is an answer: %+v", v)
	}
	if v := MathDAPO("5", "Answer\v:\v5"); !v.Correct {
		t.Errorf("a vertical tab is white space: %+v", v)
	}
	for in, want := range map[string]string{"1,፩": "1፩", "1,➀": "1➀", "1,½": "1,½"} {
		if got := NormalizeDAPO(in); got != want {
			t.Errorf("NormalizeDAPO(%q): %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"İa b": "i\u0307 b", "x\u1772an b": "x\u1772 b", "a_b an": "ab"} {
		if got := NormalizeEM(in); got != want {
			t.Errorf("NormalizeEM(%q): %q, want %q", in, got, want)
		}
	}
	if got, err := StripString(`\sqrt\\\%s`); err != nil || got != `\sqrt{s}` {
		t.Errorf("StripString: %q, %v", got, err)
	}
}
