package reports

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/store"
	"exp/reports/compare"
	"exp/reports/figure"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestGolden(t *testing.T) {
	s := newStudy(t)
	b := s.bundle(Input{Comparison: s.comparison()}, Formats{})
	golden(t, "report.md", b["report.md"])
	golden(t, "data.json", b["data.json"])
	golden(t, "files", []byte(strings.Join(slices.Sorted(maps.Keys(b)), "\n")+"\n"))
}

// Equal records give equal bytes, also from another store, and in whatever order an
// arm's runs are handed in.
func TestSameBytes(t *testing.T) {
	s := newStudy(t)
	want := s.bundle(Input{Comparison: s.comparison()}, Formats{})
	reversed := s.comparison()
	for i := range reversed.Arms {
		slices.Reverse(reversed.Arms[i].Runs)
	}
	swapped := s.bundle(Input{Comparison: reversed}, Formats{})
	other := newStudy(t)
	elsewhere := other.bundle(Input{Comparison: other.comparison()}, Formats{})
	for name, content := range want {
		if !bytes.Equal(content, elsewhere[name]) {
			t.Errorf("%s differs between equal stores", name)
		}
		// data.json quotes the comparison as it was handed in.
		if name != "data.json" && name != manifestName && !bytes.Equal(content, swapped[name]) {
			t.Errorf("%s depends on the order of an arm's runs", name)
		}
	}

	alone := s.bundle(Input{Arm: compare.Arm{Runs: s.ppo}}, Formats{})
	backwards := slices.Clone(s.ppo)
	slices.Reverse(backwards)
	if diff := cmp.Diff(digests(alone), digests(s.bundle(Input{Arm: compare.Arm{Runs: backwards}}, Formats{}))); diff != "" {
		t.Errorf("one arm depends on the order of its runs (-want +got):\n%s", diff)
	}
}

func digests(b Bundle) map[string]string {
	m := map[string]string{}
	for name, content := range b {
		m[name] = digestOf(string(content)).String()
	}
	return m
}

// Every link of the pages leads to a file of the bundle or to an anchor of the page,
// and no page names an address outside.
func TestLinksResolve(t *testing.T) {
	s := newStudy(t)
	for name, in := range map[string]Input{"two arms": {Comparison: s.comparison()}, "one arm": {Arm: compare.Arm{Label: "alone", Runs: s.flowrl}}} {
		in.DB = s.db
		r, err := New(t.Context(), in)
		s.must(err)
		for _, figs := range [][]string{nil, {"png"}, {}} {
			b, err := r.Bundle(Formats{Figures: figs})
			s.must(err)
			page := string(b["index.html"])
			ids := map[string]bool{}
			for _, m := range regexp.MustCompile(`\bid="([^"]+)"`).FindAllStringSubmatch(page, -1) {
				if ids[m[1]] {
					t.Errorf("%s: id %q twice", name, m[1])
				}
				ids[m[1]] = true
			}
			for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
				anchor, isAnchor := strings.CutPrefix(m[1], "#")
				if isAnchor && !ids[anchor] || !isAnchor && m[1] != "data:," && b[m[1]] == nil {
					t.Errorf("%s, figures %v: index.html links to %q, which is not there", name, figs, m[1])
				}
			}
			md := string(b["report.md"])
			for _, m := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(md, -1) {
				to, isAnchor := strings.CutPrefix(m[1], "#")
				if isAnchor && !strings.Contains(strings.ToLower(md), "\n## "+strings.ReplaceAll(to, "-", " ")) || !isAnchor && b[m[1]] == nil {
					t.Errorf("%s, figures %v: report.md links to %q, which is not there", name, figs, m[1])
				}
			}
			for _, file := range []string{"index.html", "report.md"} {
				if m := regexp.MustCompile(`(?i)(https?:|//[a-z]|url\(|@import|<script|<link rel="stylesheet|<iframe)[^\n]{0,40}`).Find(b[file]); m != nil && !strings.Contains(string(m), "script>alert") {
					t.Errorf("%s: %s reaches outside: %s", name, file, m)
				}
			}
			if figs != nil && len(figs) == 0 {
				for file := range b {
					if path.Dir(file) == "figures" {
						t.Errorf("%s was not asked for", file)
					}
				}
			}
		}
	}
}

// What policies write is text: in HTML, in Markdown tables, and for terminals.
func TestHostileText(t *testing.T) {
	s := newStudy(t)
	b := s.bundle(Input{Comparison: s.comparison()}, Formats{})
	html, md := string(b["index.html"]), string(b["report.md"])
	if strings.Contains(html, "<script") {
		t.Error("index.html has a script of a completion")
	}
	want := "&lt;script&gt;alert(1)&lt;/script&gt; | `a` **b**\\u001b[31m\\u202e"
	if !strings.Contains(html, want) {
		t.Errorf("index.html lacks the completion as text, %s", want)
	}
	// In a table: a code span with more ticks than the text has, bars escaped.
	want = "`` <script>alert(1)</script> \\| `a` **b**\\u001b[31m\\u202e ``"
	if !strings.Contains(md, want) {
		t.Errorf("report.md lacks %s", want)
	}
	if strings.ContainsAny(html+md, "\x1b\u202e") {
		t.Error("a control character got through")
	}
	if !strings.Contains(html, "ppo &amp; co") {
		t.Error("the arm's name is not escaped in index.html")
	}
}

func TestOneArm(t *testing.T) {
	s := newStudy(t)
	md := string(s.bundle(Input{Arm: compare.Arm{Runs: s.flowrl}}, Formats{})["report.md"])
	for _, want := range []string{"# flow\n", "2 seeds", "bands smallest to largest seed", "before training 0.000"} {
		if !strings.Contains(md, want) {
			t.Errorf("report.md lacks %q", want)
		}
	}
	for _, not := range []string{"## Comparability", "p Holm", "NaN", "%!"} {
		if strings.Contains(md, not) {
			t.Errorf("report.md has %q", not)
		}
	}
}

func TestOneSeed(t *testing.T) {
	s := newStudy(t)
	md := string(s.bundle(Input{Arm: compare.Arm{Runs: s.flowrl[:1]}}, Formats{})["report.md"])
	for _, want := range []string{"1 seed", "One seed has no band", "the variation between training seeds was not measured",
		"brackets are 95\u202f% intervals over problems"} {
		if !strings.Contains(md, want) {
			t.Errorf("report.md lacks %q", want)
		}
	}
}

// The figure of a metric leaves out runs that lack it; a metric that no run has, or that
// never changes, is listed with the reason.
func TestMissingMetrics(t *testing.T) {
	s := newStudy(t)
	b := s.bundle(Input{Comparison: s.comparison()}, Formats{})
	var d struct {
		Figures []struct{ Name, Caption string }
		Omitted []omitted
	}
	if err := json.Unmarshal(b["data.json"], &d); err != nil {
		t.Fatal(err)
	}
	captions := map[string]string{}
	for _, f := range d.Figures {
		captions[f.Name] = f.Caption
	}
	if got := captions["kl"]; !strings.Contains(got, "Not recorded for ppo & co: only methods that use the reference policy compute it") {
		t.Errorf("caption of kl: %q", got)
	}
	reasons := map[string]string{}
	for _, o := range d.Omitted {
		reasons[o.Name] = o.Reason
		if _, drawn := captions[o.Name]; drawn {
			t.Errorf("%s is drawn and omitted", o.Name)
		}
	}
	for name, want := range map[string]string{
		"accuracy":       "no run recorded val/pass@1: eval.online.every_steps is 0",
		"truncation":     "response_length/clip_ratio is 0 at every step of every run",
		"residual":       "", // another method's: these arms cannot have it
		"train-accuracy": "the same as “Mean reward” at every step of every run",
	} {
		if reasons[name] != want {
			t.Errorf("%s is omitted because %q, want %q", name, reasons[name], want)
		}
	}
}

// A run that is not finished is reported and said to be so.
func TestUnfinished(t *testing.T) {
	s := newStudy(t)
	run, _, err := s.db.EnsureRun(t.Context(), store.NewRun{RID: digestOf("new"), XID: digestOf("newx"), Name: "new", Task: "countdown", Algo: "ppo", StepsTotal: 9,
		Config: store.Config{Digest: digestOf("{}"), JSON: "{}", Source: "version: 1\n"}})
	s.must(err)
	md := string(s.bundle(Input{Arm: compare.Arm{Runs: []store.Run{run}}}, Formats{})["report.md"])
	for _, want := range []string{"No final evaluation is recorded", "did not finish: new seed 0 (pending)"} {
		if !strings.Contains(md, want) {
			t.Errorf("report.md lacks %q", want)
		}
	}
}

// The names of arms in text have the colours that figures give them.
func TestArmColors(t *testing.T) {
	bar := figure.Bar{Head: figure.Head{Name: "colors", Title: "Colors"}, Groups: []string{"g"}}
	for i := range armColors {
		bar.Arms = append(bar.Arms, figure.ArmValues{Name: string(rune('a' + i)), Values: []figure.Estimate{figure.Point(1)}})
	}
	f, err := bar.Draw()
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, m := range regexp.MustCompile(`fill:(#[0-9A-F]{6})`).FindAllSubmatch(f.SVG, -1) {
		c := strings.ToLower(string(m[1]))
		if slices.Contains(armColors[:], c) && !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	// Black is SVG's default and not written.
	named := slices.DeleteFunc(slices.Clone(armColors[:]), func(c string) bool { return c == "#000000" })
	if diff := cmp.Diff(named, order); diff != "" {
		t.Errorf("figures draw arms in other colours (-page +figures):\n%s", diff)
	}
	for i, c := range armColors {
		short := c
		if c == "#000000" {
			short = "#000"
		}
		if want := fmt.Sprintf("--a%d: ", i) + short + ";"; !strings.Contains(pageCSS, want) {
			t.Errorf("page.css lacks %s", want)
		}
	}
}

func BenchmarkReport(b *testing.B) {
	s := newStudy(b)
	for b.Loop() {
		s.bundle(Input{Comparison: s.comparison()}, Formats{})
	}
}
