// Package metric is the catalogue of recorded metrics: unit, title, heading,
// definition, direction and axis of each, and where it is shown by default. The
// progress display, commands, comparisons, reports and exports read it, and keep no
// such facts themselves.
//
// Training metrics have verl's public names where verl has one. Evaluation metrics are
// defined next to their formulas in package eval and collected here. The package
// computes nothing.
package metric

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"exp/eval"
)

// Units with a special meaning: a share lies between 0 and 1, a judge's points between 1 and 5, and among evaluation
// metrics only a reward may be negative.
const (
	Share  = "share"
	Points = "points"
	Reward = "reward"
	Nats   = "nats"
	tokens = "tokens"
)

// Metric describes a metric, or a family of metrics with one definition.
type Metric struct {
	// Name is the recorded name. Words in capitals stand for any text:
	// reward/NAME/mean.
	Name       string
	Unit       string // as recorded; "" for a pure number
	Per        string // what the unit counts over: nats per token, a share of completions
	Title      string
	Heading    string // of a column; "": the name
	Definition string
	Direction  eval.Direction
	Absent     string // why a run may not record it
	Axis       Axis
	Shown      Shown
	Diversity  bool // it measures how different answers are, not how good
}

// Axis describes the axis of a metric in a figure. Metrics with equal axes can share
// one.
type Axis struct {
	Label string   // "": the title
	Log   bool     // base 10; otherwise linear
	Zero  bool     // a linear axis begins at 0
	Least *float64 // smaller values are cut off, as they would flatten the rest
}

// Shown says where a metric appears by default.
type Shown uint16

const (
	OnProgress Shown = 1 << iota // the line of a step
	OverSteps                    // exp metrics and exp show
	InLists                      // exp ls and exp run: a run's results; pass@K with the largest K
	Tested                       // exp compare tests it; pass@K with the largest K
	Described                    // exp compare shows it next to the tested metrics
	Summarized                   // the summary of a report on more than two arms
	WideOnly                     // shown on wide pages only: it follows from other results
)

// places names the flags for people, in order.
var places = []string{"progress", "over steps", "lists", "tested", "described", "summary", "wide pages only"}

// Places lists where the metric is shown by default.
func (s Shown) Places() []string {
	list := []string{}
	for i, place := range places {
		if s&(1<<i) != 0 {
			list = append(list, place)
		}
	}
	return list
}

// Counts returns the unit and what it counts over: "nats per token", "share of
// completions".
func (m Metric) Counts() string {
	switch {
	case m.Per == "":
		return m.Unit
	case m.Unit == Share:
		return m.Unit + " of " + m.Per
	}
	return strings.TrimSpace(m.Unit + " per " + m.Per)
}

// AxisUnit is Counts without a unit that the axis label already names.
func (m Metric) AxisUnit() string {
	if m.Unit == "" || !strings.HasSuffix(m.Axis.Label, m.Unit) {
		return m.Counts()
	}
	m.Unit = ""
	return m.Counts()
}

// OfSteps reports whether training steps record the metric: it is neither a result of an
// evaluation after training nor a measurement of a stage before it.
func (m Metric) OfSteps() bool {
	_, before := StageOf(m.Name)
	return !before && strings.Contains(m.Name, "/")
}

// InSentence returns the title as written within a sentence.
func (m Metric) InSentence() string {
	first, size := utf8.DecodeRuneInString(m.Title)
	word, _, _ := strings.Cut(m.Title[size:], " ")
	if strings.ContainsFunc(word, unicode.IsUpper) { // an abbreviation, or a name like FlowRL
		return m.Title
	}
	return string(unicode.ToLower(first)) + m.Title[size:]
}

// Scale returns "log" or "linear".
func (m Metric) Scale() string {
	if m.Axis.Log {
		return "log"
	}
	return "linear"
}

// Digits returns how many digits after the decimal point are shown.
func (m Metric) Digits() int {
	switch m.Unit {
	case tokens:
		return 1
	case "solutions", "answers", Points, Nats:
		return 2
	}
	return 3
}

// All returns the catalogue in display order.
func All() []Metric { return slices.Clone(catalogue().list) }

// ShownIn returns the metrics shown at a place, in catalogue order.
func ShownIn(place Shown) []Metric {
	all := catalogue().list
	var shown []Metric
	for i := range all { // a metric is large, and every step of a run asks
		if all[i].Shown&place != 0 {
			shown = append(shown, all[i])
		}
	}
	return shown
}

// index is the catalogue with its lookup tables.
type index struct {
	list     []Metric
	byName   map[string]int
	families func() []family // the most specific first; made on the first call: a command's help needs none
}

type family struct {
	pattern *regexp.Regexp
	fixed   int // bytes of the name outside wildcards
	at      int
}

// wildcard is a word of a family's name that stands for any text.
var wildcard = regexp.MustCompile(`[A-Z]+`)

var catalogue = sync.OnceValue(func() index {
	x := index{byName: map[string]int{}}
	var families []int
	x.list = slices.Concat(learning(), validation(), policy(), flowRL(), megatron(), critic(), process(),
		optimization(), chosen(), sampler(), fineTuning(), rewardModels(), preferences(), cost(), results())
	for i, m := range x.list {
		if !wildcard.MatchString(m.Name) {
			x.byName[m.Name] = i
			continue
		}
		families = append(families, i)
	}
	x.families = sync.OnceValue(func() []family { return familiesOf(x.list, families) })
	return x
})

// familiesOf returns the families at some places of a list.
func familiesOf(list []Metric, at []int) []family {
	var families []family
	for _, i := range at {
		name := list[i].Name
		pattern := wildcard.ReplaceAllStringFunc(regexp.QuoteMeta(name), wild)
		fixed := len(wildcard.ReplaceAllString(name, ""))
		families = append(families, family{regexp.MustCompile("^" + pattern + "$"), fixed, i})
	}
	slices.SortStableFunc(families, func(a, b family) int { return b.fixed - a.fixed })
	return families
}

// wild returns the pattern for a word in capitals. The name of a problem source may
// contain slashes (openai/gsm8k), and so may verl's statistics (best@4/mean).
func wild(word string) string {
	switch word {
	case "VARIABLE":
		return "([^/]+)"
	case "STATISTIC":
		return "([^/]+@.+)"
	}
	return "(.+)"
}

// Find returns the description of a recorded metric. For a member of a family it
// replaces the words in capitals by words of the name.
func Find(name string) (Metric, bool) {
	x := catalogue()
	if i, ok := x.byName[name]; ok {
		return x.list[i], true
	}
	for _, f := range x.families() {
		if words := f.pattern.FindStringSubmatch(name); words != nil {
			return x.list[f.at].of(name, words[1:]), true
		}
	}
	return Metric{Name: name}, false
}

// Lower reports whether less of a metric is better; decided is false if the catalogue says neither less nor more. Of a
// metric that it does not know more is.
func Lower(name string) (lower, decided bool) {
	m, known := Find(name)
	return m.Direction == eval.Down, m.Direction != "" || !known
}

// of fills the description of a family with a name's words.
func (m Metric) of(name string, words []string) Metric {
	if measured, ok := strings.CutPrefix(name, validationPrefix); ok {
		return onValidation(name, measured)
	}
	var pairs []string
	for i, capitals := range wildcard.FindAllString(m.Name, -1) {
		pairs = append(pairs, capitals, words[i])
	}
	fill := strings.NewReplacer(pairs...)
	m.Name, m.Title, m.Definition = name, fill.Replace(m.Title), fill.Replace(m.Definition)
	return m
}

// Unit returns the unit of a recorded metric; "" for a pure number or an unknown
// metric.
func Unit(name string) string {
	m, _ := Find(name)
	return m.Unit
}

// Heading returns the heading of a result's column: the catalogue's, or the name in
// words.
func Heading(name string) string {
	if m, _ := Find(name); m.Heading != "" {
		return m.Heading
	}
	return strings.ReplaceAll(name, "_", " ")
}
