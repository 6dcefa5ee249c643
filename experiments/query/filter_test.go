package query

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/store"
)

var update = flag.Bool("update", false, "rewrite testdata")

// now is when the run of run() is two days and one hour old.
var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// values of a run, by the text of the field.
var example = map[string]any{
	"name":                   "countdown-flowrl",
	"status":                 "done",
	"seed":                   3.0,
	"algo":                   "flowrl",
	"device":                 "cpu",
	"created":                time.Date(2026, 3, 8, 11, 0, 0, 0, time.UTC),
	"wall":                   5400.0,
	"tag":                    []any{"baseline", "v2"},
	"config.train.optim.lr":  1e-6,
	"config.task.use":        "any",
	"config.flag":            true,
	"config.eval.pass_k":     []any{1.0, 8.0},
	"config.empty":           []any{},
	"config.version":         "5",
	"metric.loss":            0.25,
	"metric.loss.min":        0.125,
	"metric.loss.at(10)":     2.0,
	"metric.critic/acc":      0.5,
	"eval.test.pass@1":       0.75,
	"eval.suite.v1.2.pass@8": 0.9,
}

func match(t *testing.T, text string) bool {
	t.Helper()
	f, err := Schema{}.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return f.Match(valuesOf(t, f), now)
}

func valuesOf(t *testing.T, f *Filter) []any {
	t.Helper()
	byField := map[store.Field]any{}
	for name, v := range example {
		field, err := ParseField(name)
		if err != nil {
			t.Fatal(err)
		}
		byField[field] = v
	}
	var values []any
	for _, field := range f.Fields() {
		values = append(values, byField[field])
	}
	return values
}

func TestMatch(t *testing.T) {
	tests := []struct {
		filter string
		want   bool
	}{
		// numbers
		{"seed = 3", true},
		{"seed = 3.0", true},
		{"seed = 4", false},
		{"seed != 4", true},
		{"seed < 3", false},
		{"seed <= 3", true},
		{"seed > 2", true},
		{"seed >= 4", false},
		{"config.train.optim.lr = 0.000001", true},
		{"config.train.optim.lr < 2e-6", true},
		{"metric.loss < inf", true},
		// text
		{"status = done", true},
		{"status == done", true},
		{"status==failed", false},
		{"status = 'done'", true},
		{`status = "done"`, true},
		{"status=done", true},
		{"name ~ countdown-*", true},
		{"name ~ *flow*", true},
		{"name ~ count?own-flowrl", true},
		{"name ~ flow*", false},
		{"name < d", true},
		{"config.version = 5", true}, // a word as written
		{"config.version = 5.0", false},
		{"algo in [ppo, flowrl]", true},
		{"algo in [ppo,grpo]", false},
		{"algo in []", false},
		{"seed in [1, 2, 3]", true},
		// booleans
		{"config.flag = true", true},
		{"config.flag = false", false},
		{"config.flag != false", true},
		{"config.flag > false", false},
		{`config.flag = "true"`, true},
		// lists: any element
		{"tag = v2", true},
		{"tag = v1", false},
		{"tag != v1", true},
		{"tag != v2", false},
		{"tag ~ base*", true},
		{"config.eval.pass_k = 8", true},
		{"config.eval.pass_k > 8", false},
		// missing fields
		{"config.nothing = 1", false},
		{"config.nothing != 1", true},
		{"config.nothing < 1", false},
		{"config.nothing >= 1", false},
		{"config.nothing is set", false},
		{"not config.nothing is set", true},
		{"config.flag is set", true},
		{"tag is set", true},
		{"config.empty is set", false},
		{"config.empty = 1", false},
		// ages and times: the run is 49 h old
		{"created < 3d", true},
		{"created < 2d", false},
		{"created > 2d", true},
		{"created <= 49h", true},
		{"created = 2d1h", true},
		{"created = 2026-03-08", true},
		{"created > 2026-03-08", false},
		{"created >= 2026-03-08", true},
		{"created < 2026-03-09", true},
		{"created <= 2026-03-08", true},
		{"created > 2026-03-07", true},
		{"created = 2026-03-08T11:00:00Z", true},
		{"created < 2026-03-08T12:00:00+01:00", false},
		{"created <= 2026-03-08T12:00:00+01:00", true},
		{"wall = 1.5h", true},
		{"wall > 1h29m59s", true},
		{"wall > 90m", false},
		{"wall >= 5400", true},
		{"wall < 1w", true},
		// metrics and evaluations
		{"metric.loss = 0.25", true},
		{"metric.loss.min = 0.125", true},
		{"metric.loss.at(10) = 2", true},
		{"metric.loss.at( 10 ) = 2", true},
		{"metric.loss.at(11) is set", false},
		{"metric.critic/acc >= 0.5", true},
		{"eval.test.pass@1 > 0.7", true},
		{"eval.suite.v1.2.pass@8 > 0.8", true},
		// and, or, not
		{"seed = 3 and status = done", true},
		{"seed = 3 and status = failed", false},
		{"seed = 4 or status = done", true},
		{"seed = 3 or seed = 4 and status = failed", true}, // and binds closer
		{"(seed = 3 or seed = 4) and status = failed", false},
		{"not seed = 4", true},
		{"not not seed = 3", true},
		{"not seed = 4 and status = failed", false}, // not binds closest
		{"not (seed = 4 and status = failed)", true},
		{"((seed=3))", true},
		{"name = 'and'", false},
	}
	for _, tt := range tests {
		if got := match(t, tt.filter); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.filter, got, tt.want)
		}
	}
}

// A value that a field never has is an error: an empty list would hide the typing error.
func TestImpossibleValues(t *testing.T) {
	schema := Schema{Config: func(path string) (Values, bool) {
		switch path {
		case "train.optim.lr":
			return Values{Number: true}, true
		case "flag":
			return Values{Words: []string{"true", "false"}}, true
		case "many":
			return Values{Words: strings.Fields("a b c d e f g h i j k l m n")}, true
		}
		return Values{}, false
	}}
	statuses := "status takes pending, running, done, failed, interrupted or stopped, not "
	const times = "takes an age (2d, 3h), a day (2026-01-02) or an instant (2026-01-02T15:04:05Z), not "
	for _, tt := range []struct {
		filter    string
		col       int
		msg, help string // msg empty: no error
	}{
		{"status = finished", 9, statuses + `"finished"`, ""},
		{"status = Done", 9, statuses + `"Done"`, "did you mean done?"},
		{"seed = 1 and status in [done, faild]", 30, statuses + `"faild"`, "did you mean failed?"},
		{"status != 'stoped'", 10, statuses + `"stoped"`, "did you mean stopped?"},
		{"status ~ *ed", 0, "", ""},
		{"verified = ful", 11, `verified takes blobs, score, sample, prefix, full or failed, not "ful"`, "did you mean full?"},
		{"steps > abc", 8, `steps takes a number, not "abc"`, ""},
		{"tokens > 3h", 9, `tokens takes a number, not "3h"`, ""},
		{"id = 22", 5, `id takes the first 4 to 64 hexadecimal digits of an id, not "22"`, ""},
		{"xid != my-run", 7, `xid takes the first 4 to 64 hexadecimal digits of an id, not "my-run"`, ""},
		{"wall > long", 7, `wall takes a number or a duration (90s, 3h), not "long"`, ""},
		{`seed = "0"`, 7, "seed takes a number, not a text in quotes", "write 0 without quotes"},
		{"seed ~ 3*", 7, `"~" matches texts, and seed is a number`, ""},
		{"created > yesterday", 10, "created " + times + `"yesterday"`, ""},
		{"created > 5", 10, "created " + times + `"5"`, ""},
		{"created > '2d'", 10, "created " + times + "a text in quotes", "write 2d without quotes"},
		{"ended ~ 2026*", 8, `"~" matches texts, and ended is a time`, ""},
		{"metric.loss.at( 10 ) > x", 23, `metric.loss.at(10) takes a number or a duration (90s, 3h), not "x"`, ""},
		{"metric.perf/step < 90s", 0, "", ""},
		{"eval.test.pass@1 = high", 19, `eval.test.pass@1 takes a number or a duration (90s, 3h), not "high"`, ""},
		{"config.train.optim.lr = fast", 24, `config.train.optim.lr takes a number, not "fast"`, ""},
		{"config.flag = yes", 14, `config.flag takes true or false, not "yes"`, ""},
		{"config.many = z", 14, `config.many takes a, b, c, d, e, f, g, h, i, j, k, l and 2 more, not "z"`, ""},
		{"config.train.optim.lr > 1e-6 and config.flag = true and config.other = fast", 0, "", ""},
		{"name = 3 and tag > b and not (started < 2026-01-02T15:04:05Z)", 0, "", ""},
	} {
		_, err := schema.Parse(tt.filter)
		if tt.msg == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.filter, err)
			}
			continue
		}
		var e *SyntaxError
		if !errors.As(err, &e) || e.Msg != tt.msg || e.Col != tt.col || e.Help != tt.help || e.Text != tt.filter {
			t.Errorf("%s: %v, want %q at %d with help %q", tt.filter, err, tt.msg, tt.col, tt.help)
		}
	}
}

func TestFieldsOnce(t *testing.T) {
	f, err := Schema{}.Parse("seed = 1 or seed = 2 and metric.loss.max > 3 and metric.loss > 1")
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Field{
		{Kind: store.FieldColumn, Name: "seed"},
		{Kind: store.FieldMetric, Name: "loss", Agg: store.AggMax},
		{Kind: store.FieldMetric, Name: "loss"},
	}
	if diff := cmp.Diff(want, f.Fields()); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestParseField(t *testing.T) {
	tests := []struct {
		text string
		want store.Field
	}{
		{"status", store.Field{Kind: store.FieldColumn, Name: "status"}},
		{"tag", store.Field{Kind: store.FieldTag}},
		{"config.a.b", store.Field{Kind: store.FieldConfig, Name: "a.b"}},
		{"metric.critic/rewards/mean", store.Field{Kind: store.FieldMetric, Name: "critic/rewards/mean"}},
		{"metric.a.b", store.Field{Kind: store.FieldMetric, Name: "a.b"}},
		{"metric.a.max", store.Field{Kind: store.FieldMetric, Name: "a", Agg: store.AggMax}},
		{"metric.min", store.Field{Kind: store.FieldMetric, Name: "min"}},
		{"metric.a.at(7)", store.Field{Kind: store.FieldMetric, Name: "a", Agg: store.AggAt, Step: 7}},
		{"metric.a(b)", store.Field{}},
		{"metric.a.at", store.Field{}},
		{"metric.a.at(x)", store.Field{}},
		{"metric.", store.Field{}},
		{"config", store.Field{}},
		{"config.", store.Field{}},
		{"eval.a.b", store.Field{Kind: store.FieldEval, Suite: "a", Name: "b"}},
		{"eval.a", store.Field{}},
		{"eval.a.", store.Field{}},
		{"seed(3)", store.Field{}},
		{"", store.Field{}},
		{"statu", store.Field{}},
	}
	for _, tt := range tests {
		got, err := ParseField(tt.text)
		if (err == nil) != (tt.want.Kind != 0) || err == nil && got != tt.want {
			t.Errorf("ParseField(%q) = %+v, %v, want %+v", tt.text, got, err, tt.want)
		}
	}
}

// Errors as a user sees them; look at the golden file for what they say.
func TestSyntaxErrors(t *testing.T) {
	filters := []string{
		"",
		"   ",
		"status",
		"status done",
		"status =",
		"status = and seed = 1",
		"stauts = done",
		"status = done seed = 1",
		"status === done",
		"(status = done",
		"status = done)",
		"status = 'done",
		"not",
		"= 3",
		"'status' = 3",
		"and = 3",
		"seed in 3",
		"seed in [3",
		"seed in [3 4]",
		"seed in [3,",
		"seed in [,]",
		"seed is 3",
		"seed is",
		"metric.loss.at = 3",
		"metric.loss.at(x) = 3",
		"metric.loss.at('3') = 3",
		"metric.loss.at(3 = 3",
		"metric. = 3",
		"eval.test > 3",
		"name = 'é' and stätus = 1",
		"seed\t=\n]",
		strings.Repeat("(", 150),
		strings.Repeat("not ", 150) + "seed = 1",
	}
	var got strings.Builder
	for _, text := range filters {
		_, err := Schema{}.Parse(text)
		var e *SyntaxError
		if !errors.As(err, &e) || e.Text != text {
			t.Errorf("Parse(%q): error %v, want *SyntaxError", text, err)
			continue
		}
		got.WriteString(err.Error() + "\n\n")
	}
	golden := filepath.Join("testdata", "syntax.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"?", "", false}, {"?", "é", true},
		{"a*c", "abbc", true}, {"a*c", "ac", true}, {"a*c", "acb", false}, {"*a*b*", "xxaxxbxx", true}, {"*a*b*", "ba", false},
		{"a**", "a", true}, {"[a]", "a", false}, {"*ab", "aab", true}, {"*?b", "b", false},
		// Exponential for a matcher that goes back further than one star.
		{strings.Repeat("a*", 30) + "b", strings.Repeat("a", 1000), false},
	}
	for _, tt := range tests {
		if got := glob(tt.pattern, tt.text); got != tt.want {
			t.Errorf("glob(%q, %q) = %t, want %t", tt.pattern, tt.text, got, tt.want)
		}
	}
}

// No text breaks the parser; an error lies within the text; a filter and its
// negation are never of one mind.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"seed = 3 and not (tag ~ 'a*' or created < 2d)", "metric.loss.at(3) in [1, 2.5, inf]", "a is set", "\"\xff", "name = 'é'",
		"config.a != 2026-01-02", "((((", "eval.a.b>=1h30m",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := Schema{}.Parse(text)
		if err != nil {
			var e *SyntaxError
			if !errors.As(err, &e) || e.Col < 0 || e.Col > len([]rune(text)) || e.Msg == "" || len(strings.Split(err.Error(), "\n")) < 3 {
				t.Fatalf("Parse(%q): error %#v", text, err)
			}
			return
		}
		negated, err := Schema{}.Parse("not (" + text + ")")
		if err != nil {
			if strings.Contains(err.Error(), "nested deeper") {
				return
			}
			t.Fatalf("Parse(not (%q)): %v", text, err)
		}
		values := make([]any, len(filter.Fields()))
		for _, v := range []any{nil, 0.0, 3.0, "", "done", true, now, []any{}, []any{"a", 1.0, nil}} {
			for i := range values {
				values[i] = v
			}
			if filter.Match(values, now) == negated.Match(values, now) {
				t.Fatalf("%q and its negation agree on %v", text, v)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	f, err := Schema{}.Parse("algo = flowrl and metric.loss < 0.5 and not tag = old and created < 30d")
	if err != nil {
		b.Fatal(err)
	}
	values := []any{"flowrl", 0.25, []any{"baseline"}, now.Add(-time.Hour)}
	for b.Loop() {
		if !f.Match(values, now) {
			b.Fatal("no match")
		}
	}
}
