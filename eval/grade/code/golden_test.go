package code

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/sandbox"
)

// TestGoldenCodeComparators compares with the recorded outputs of the FlowRL release, except error_message,
// which only comments on the verdict.
func TestGoldenCodeComparators(t *testing.T) {
	dir := os.Getenv("EXP_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data", "golden")
	}
	data, err := os.ReadFile(filepath.Join(dir, "code_comparators.json"))
	if err != nil {
		t.Skipf("no golden vectors: %v", err)
	}
	var file struct {
		Cases []struct {
			Name, Function string
			Inputs         struct {
				Got, Expected string
				Response      string `json:"model_response"`
				Inputs        []string
				Code          string
			}
			Outputs struct {
				Result   json.RawMessage
				Results  []json.RawMessage
				Selected []int
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			in, out := c.Inputs, c.Outputs
			switch c.Function {
			case "taco.stripped_string_compare":
				if got := tacoSame(in.Got, in.Expected); (string(out.Result) == "true") != got {
					t.Errorf("%q for %q: %v, recorded %s", in.Got, in.Expected, got, out.Result)
				}
			case "taco.compare_std_results", "codeforces.compare_std_results":
				family := TACO
				if c.Function[0] == 'c' {
					family = Codeforces
				}
				if got := family.Upstream(in.Got, in.Expected); (string(out.Result) == "true") != got {
					t.Errorf("%q for %q: %v, recorded %s", in.Got, in.Expected, got, out.Result)
				}
			case "codeforces.stripped_string_compare":
				if got := pythonStrip(in.Got) == pythonStrip(in.Expected); (string(out.Result) == "true") != got {
					t.Errorf("%q for %q: %v, recorded %s", in.Got, in.Expected, got, out.Result)
				}
			case "livecodebench.grade_stdio":
				want := len(out.Results) == 1 && string(out.Results[0]) == "true"
				if got := LiveCodeBench.Upstream(in.Got, in.Expected); got != want {
					t.Errorf("%q for %q: %v, recorded %s", in.Got, in.Expected, got, out.Results)
				}
			case "extract_code_from_model":
				got, ok := ExtractUpstream(in.Response)
				text, _ := json.Marshal(got)
				if !ok {
					text = []byte("null")
				}
				if string(text) != string(out.Result) {
					t.Errorf("%s, recorded %s", text, out.Result)
				}
			case "clean_code_main_block":
				if got, _ := json.Marshal(withoutMain(in.Code)); string(got) != string(out.Result) {
					t.Errorf("%s, recorded %s", got, out.Result)
				}
			case "check_correctness":
				lengths := make([]int, len(in.Inputs))
				for i, s := range in.Inputs {
					lengths[i] = len(s)
				}
				if got := longest(lengths); !slices.Equal(got, out.Selected) {
					t.Errorf("%v, recorded %v", got, out.Selected)
				}
			default:
				t.Errorf("no check of %s", c.Function)
			}
		})
	}
}

// TestLooselySame has cases computed by hand from the published code and confirmed by it.
func TestLooselySame(t *testing.T) {
	for _, tt := range []struct {
		got, want string
		same      bool
	}{
		{"NO", "YES", false},             // {N,O} is not {YES}
		{"10", "1 0", true},              // {1,0} is {1,0}
		{"9 9 9", "9 9", true},           // {{9}} is {{9}}
		{"3\n2\n1", "1\n2\n3", true},     // three sets of one
		{"1\n1\n2", "2\n1", true},        // sets forget how many
		{"123", "1\n2\n3", true},         // characters close to lines
		{"12", "1.000001\n2", true},      // within 1e-5
		{"1", "1.0001", true},            // round(1.0001, 3) is 1
		{"2", "2.0005", false},           // 2.0005 is above the half in binary
		{"0", "-0.0001", true},           // both round to 0
		{"1.5", "1.5", false},            // characters against a token; equal texts are accepted before
		{"1\n2", "1 2", false},           // {{1},{2}} is not {{1,2}}
		{"-1", "- 1", true},              // {-,1} is {-,1}
		{"1\n2\n", "1\n2\n\n \n", false}, // a blank line of white space is a set of nothing
		{"", "\n\n", true},               // nothing and nothing
		{"", "x", false},                 //
		{"1", "nan", false},              // nan equals nothing
		{"1_0", "1 0", false},            // _ is a character here
		{"YES\nNO", "N O\nY E S", true},
		{"98 7", "8 9\n7.0001", true},
		{"98 7", "8 9\n7.01", false},
		{"1\u00a02", "1\n2", true}, // str.split knows this space,
		{"1\x1c2", "1\n2", true},   // and this
		{"1\x002", "1\n2", false},
	} {
		if got := looselySame(tt.got, tt.want); got != tt.same {
			t.Errorf("%q for %q: %v, want %v", tt.got, tt.want, got, tt.same)
		}
	}
}

// TestSpecifiedOutputs has the cases that the specification lists.
func TestSpecifiedOutputs(t *testing.T) {
	for _, tt := range []struct {
		family    Family
		got, want string
		upstream  bool
		strict    bool
	}{
		{TACO, "NO", "YES", true, false},
		{TACO, "Impossible", "7", true, false},
		{TACO, "yes", "YES", true, false},
		{TACO, "b\na", "a\nb", true, false},
		{TACO, "1.000001", "1", true, false},
		{TACO, "1.001", "1", false, false},
		{Codeforces, "3\n2\n1", "1\n2\n3", true, false},
		{Codeforces, "1\n1\n2", "2\n1", true, false},
		{Codeforces, "1.0000001", "1", false, false},
		{Codeforces, "1 2 \n", "1 2", true, true},
		{LiveCodeBench, "1.0", "1", true, false}, // 1 is not a fraction: text
		{LiveCodeBench, "1.0 ", "1.00\n", true, true},
		{LiveCodeBench, "1e0", "1.00", true, true},
		{LiveCodeBench, "0e99999", "-0.0", true, false},
		{LiveCodeBench, "0e", "-0.0", false, false},
		{LiveCodeBench, "0e-", "-0.0", false, false},
		{LiveCodeBench, "0e9.9", "-0.0", false, false},
		{LiveCodeBench, "1e99999", "-0.0", false, false},
		{LiveCodeBench, "-+inf", "-inf", false, false},
		{LiveCodeBench, "+inf", "Infinity", true, false},
		{LiveCodeBench, "1\n\n2", "1\n2", false, false},
		{LiveCodeBench, " 1", "1", true, true},
		{LiveCodeBench, "\n 1\n", "1", true, true},
		{LiveCodeBench, "1", "\r\n\n1", true, true},
		{LiveCodeBench, "1  2", "1 2", true, true},
		{LiveCodeBench, "a  b", "a b", false, true},
		{LiveCodeBench, "", "\n", true, true},
		{LiveCodeBench, "1_0", "10", true, false},
		{LiveCodeBench, "inf", "Infinity", true, false},
		{LiveCodeBench, "nan", "NaN", false, false},
		{LiveCodeBench, "٣ 1.0", "٣ 1", true, false},                               // digits of any script are numbers
		{TACO, "٣", "5", false, false}, {TACO, "x 1e-900000", "x 1", false, false}, // 0 is not 1
	} {
		if got := tt.family.Upstream(tt.got, tt.want); got != tt.upstream {
			t.Errorf("%s: %q for %q: %v, want %v", tt.family, tt.got, tt.want, got, tt.upstream)
		}
		if got := sameOutput(tt.got, tt.want, 0); got != tt.strict {
			t.Errorf("strict: %q for %q: %v, want %v", tt.got, tt.want, got, tt.strict)
		}
	}
}

// TestPublishedOutput: what the published comparators get of an output. TACO's takes "12" for the lines 1 and 2.
func TestPublishedOutput(t *testing.T) {
	for f, want := range map[Family]string{TACO: "1\n2", Codeforces: "1\n2\n\n", LiveCodeBench: "1\r\n2\r\n\n"} {
		if got := f.publishedOutput("1\r\n2\r\n\n"); got != want {
			t.Errorf("%s: %q, want %q", f, got, want)
		}
	}
}

func TestTolerance(t *testing.T) {
	for _, tt := range []struct {
		got, want string
		tolerance float64
		same      bool
	}{
		{"1.0000005", "1", 1e-6, true},
		{"1.000002", "1", 1e-6, false},
		{"1000000.5", "1000000", 1e-6, true}, // relatively
		{"1.5 x", "1.5 y", 1e-6, false},
		{"nan", "1", 1e-6, false},
		{"1e999999999", "1", 1e-6, false},
		{"x", "1.0", 1e-6, false},
		{"1/1", "1.0", 1e-6, false},
		{"10000001", "10000000", 1e-6, false}, // a count
		{"10000000", "10000000.5", 1e-6, true},
	} {
		if got := sameOutput(tt.got, tt.want, tt.tolerance); got != tt.same {
			t.Errorf("%q for %q within %g: %v, want %v", tt.got, tt.want, tt.tolerance, got, tt.same)
		}
	}
}

func TestSameValue(t *testing.T) {
	for _, tt := range []struct {
		got, want string
		tolerance float64
		same      bool
	}{
		{"1", "true", 0, true}, {"1.0", "1", 0, true}, {"0", "false", 0, true}, {"0", "null", 0, false},
		{"[1,[2,3]]", "[1,[2,3]]", 0, true}, {"[1,2]", "[2,1]", 0, false}, {"[]", "null", 0, false},
		{`"1"`, "1", 0, false}, {`{"a":1,"b":[2]}`, `{"b":[2],"a":1.0}`, 0, true}, {`{"a":1}`, `{"a":1,"b":2}`, 0, false},
		{"9007199254740993", "9007199254740992", 0, false}, {"0.30000000000000004", "0.3", 0, false}, {"0.30000000000000004", "0.3", 1e-9, true},
		{"1e400", "1e400", 0, false}, // no double
		{"10000001", "10000000", 1e-6, false}, {"10000001.0", "10000000", 1e-6, true},
	} {
		var g, w any
		if err := sandbox.DecodeValue([]byte(tt.got), &g); err != nil {
			t.Fatal(err)
		}
		if err := sandbox.DecodeValue([]byte(tt.want), &w); err != nil {
			t.Fatal(err)
		}
		if got := sameValue(g, w, tt.tolerance); got != tt.same {
			t.Errorf("%s for %s within %g: %v, want %v", tt.got, tt.want, tt.tolerance, got, tt.same)
		}
	}
}
