package config

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rl"
)

// What estimators and losses declare is all that the table needs to know: each setting
// is a key with its help, and a foreign name of it points there.
func TestSettingsAreKeys(t *testing.T) {
	for _, r := range append(lossReaders(), estimatorReaders()...) {
		for _, s := range r.settings {
			k := lookup(algoPath(s.Key))
			if k == nil || k.Help != s.Help || k.Unit != s.Unit || !schema().settings[k.Path] {
				t.Fatalf("%s reads %s, which is the key %+v", r.name, s.Key, k)
			}
			for _, name := range s.Verl {
				ours := strings.HasSuffix("."+s.Key, "."+name)
				if now, _, ok := renamed(name); !ours && (!ok || now != k.Path) {
					t.Errorf("%s is said to be %q, want %s", name, now, k.Path)
				}
			}
		}
	}
}

// Two losses with settings: one private, one shared; the second loss reads the shared one
// only sometimes and with another default.
func TestSettingKeys(t *testing.T) {
	kind := rl.Setting{Key: "made.kind", Default: "a", Words: []string{"a", "b"}, Preset: true, Help: "which"}
	width := rl.Setting{Key: "made.width", Range: "(0, 1]", Unit: "fraction", Help: "how wide", Below: "made.limit"}
	limit := rl.Setting{Key: "made.limit", Default: math.Inf(1), Null: true, Range: "[0, inf)", Help: "how far",
		While: []rl.Condition{{Key: "made.kind", Words: []string{"b"}}}}
	sometimes := width
	sometimes.Where, sometimes.From, sometimes.Cases = []rl.Condition{{Key: "made.on"}}, "made.kind", []rl.Case{{Word: "b", Value: 0.5}}
	got := settingKeys("algo.loss", []reader{{"x", []rl.Setting{kind, width}}, {"y", []rl.Setting{sometimes, limit}}})
	on := Term{Path: "algo.made.on", Above: true}
	want := []Key{
		{Path: "algo.made.kind", Kind: Enum, Words: []string{"a", "b"}, Role: Expanded, Default: is("a"), Help: "which",
			When: []Clause{only("algo.loss", "x")}},
		{Path: "algo.made.width", Kind: Float, Range: above(0).upTo(1), Unit: "fraction", Help: "how wide",
			Default: by("algo.made.kind", Default{}, when("b", is(0.5))), When: []Clause{append(only("algo.loss", "x"), on)}},
		{Path: "algo.made.limit", Kind: Float, Null: true, Range: atLeast(0), Default: null(), Help: "how far",
			When: []Clause{only("algo.loss", "y"), only("algo.made.kind", "b")}},
	}
	for i := range want {
		want[i].Stages = at(Train)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Default{})); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]Range{
		"": {}, "[0, inf)": atLeast(0), "(0, inf)": above(0), "(0, 1]": above(0).upTo(1), "[0, 1)": atLeast(0).below(1), "[1, 64]": between(1, 64),
	} {
		if got := parseRange(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{"0, 1", "(0 1)", "(a, 1)", "(0, 1"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken for an interval", text)
				}
			}()
			parseRange(text)
		}()
	}
}
