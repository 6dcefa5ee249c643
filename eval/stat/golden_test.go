package stat

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goldenCase is a case of the family metrics of the golden vectors: inputs and outputs recorded from the
// public implementations. The folder is EXP_GOLDEN or, by default, shared/data/golden next to the
// repository; its README describes the schema. train/rl tests the metrics of batches.
type goldenCase struct {
	Name, Function string
	RTol, ATol     float64
	MetricsRTol    float64 `json:"metrics_rtol"`
	MetricsATol    float64 `json:"metrics_atol"`
	Params         struct {
		Seed    uint32
		N       int
		Shape   [2]int
		Size    int      `json:"subset_size"`
		Draws   int      `json:"n_bootstrap"`
		Reduces []string `json:"reduce"`
	}
	Inputs struct {
		Data        json.RawMessage
		DataSources []string `json:"data_sources"`
		SampleUIDs  []string `json:"sample_uids"`
		Infos       json.RawMessage
		SampleTurns [][]int `json:"sample_turns"`
	}
	Outputs struct {
		FirstWords  []uint32 `json:"first_uint32"`
		First       []int    `json:"first_40"`
		Last        []int    `json:"last_10"`
		Sum         int
		WeightedSum int          `json:"weighted_sum"`
		MeanStd     [][2]float64 `json:"mean_std"`
		Out         float64
		Metrics     map[string]map[string]map[string]float64
	}
	Metrics map[string]any // numbers; of other functions also "NaN"
}

func TestGolden(t *testing.T) {
	dir := os.Getenv("EXP_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data", "golden")
	}
	data, err := os.ReadFile(filepath.Join(dir, "metrics.json"))
	if err != nil {
		t.Skipf("no golden vectors: %v", err)
	}
	var file struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(t *testing.T, c *goldenCase){
		"numpy.random.seed":                 goldenWords,
		"numpy.random.choice(replace=True)": goldenChoice,
		"bootstrap_metric":                  goldenBootstrap,
		"calc_maj_val":                      goldenMajority,
		"process_validation_metrics":        goldenValidation,
		"RayPPOTrainer._val_metrics_update": goldenValidation,
	}
	checked := 0
	for _, raw := range file.Cases {
		var head struct{ Function string }
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		check, ok := checks[head.Function]
		if !ok {
			continue
		}
		var c goldenCase
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%s: %v", head.Function, err)
		}
		checked++
		t.Run(c.Name, func(t *testing.T) { check(t, &c) })
	}
	t.Logf("metrics: %d of %d cases checked", checked, len(file.Cases))
}

func (c *goldenCase) compare(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !near(got, want, c.ATol+c.RTol*math.Abs(want)) {
		t.Errorf("%s = %.17g, want %.17g", what, got, want)
	}
}

func goldenWords(t *testing.T, c *goldenCase) {
	rng := newMersenne(c.Params.Seed)
	for i, want := range c.Outputs.FirstWords {
		if got := rng.uint32(); got != want {
			t.Errorf("word %d = %d, want %d", i, got, want)
		}
	}
}

func goldenChoice(t *testing.T, c *goldenCase) {
	rng := newMersenne(c.Params.Seed)
	var got []int
	sum, weighted := 0, 0
	for i := range c.Params.Shape[0] * c.Params.Shape[1] {
		k := rng.below(c.Params.N)
		got = append(got, k)
		sum += k
		weighted += k * (i + 1)
	}
	first, last := c.Outputs.First, c.Outputs.Last
	if !slices.Equal(got[:len(first)], first) || !slices.Equal(got[len(got)-len(last):], last) {
		t.Errorf("drawn %v … %v, want %v … %v", got[:len(first)], got[len(got)-len(last):], first, last)
	}
	if sum != c.Outputs.Sum || weighted != c.Outputs.WeightedSum {
		t.Errorf("sums %d, %d, want %d, %d", sum, weighted, c.Outputs.Sum, c.Outputs.WeightedSum)
	}
}

// votes returns the samples of a case: plain numbers, or numbers with answers.
func (c *goldenCase) votes(t *testing.T) (values []float64, answers []string) {
	if json.Unmarshal(c.Inputs.Data, &values) == nil {
		return values, nil
	}
	values = nil
	var voted []struct {
		Val  float64
		Pred string
	}
	if err := json.Unmarshal(c.Inputs.Data, &voted); err != nil {
		t.Fatal(err)
	}
	for _, v := range voted {
		values, answers = append(values, v.Val), append(answers, v.Pred)
	}
	return values, answers
}

func goldenBootstrap(t *testing.T, c *goldenCase) {
	values, answers := c.votes(t)
	reductions := map[string]func(index []int) float64{
		"max":  func(index []int) float64 { return slices.Max(pick(values, index)) },
		"min":  func(index []int) float64 { return slices.Min(pick(values, index)) },
		"mean": func(index []int) float64 { return MomentsOf(pick(values, index)).Mean },
		"maj":  func(index []int) float64 { return Majority(answers, values, index) },
	}
	for k, name := range c.Params.Reduces {
		got := BootstrapSubsets(len(values), c.Params.Size, SubsetDraws{Draws: c.Params.Draws, Seed: c.Params.Seed}, reductions[name])
		c.compare(t, name+" mean", got.Mean, c.Outputs.MeanStd[k][0])
		c.compare(t, name+" std", got.Std, c.Outputs.MeanStd[k][1])
	}
}

func goldenMajority(t *testing.T, c *goldenCase) {
	values, answers := c.votes(t)
	all := make([]int, len(values))
	for i := range all {
		all[i] = i
	}
	c.compare(t, "majority", Majority(answers, values, all), c.Outputs.Out)
}

// goldenValidation checks all metrics by name. One of the functions omits the section that the other puts
// first.
func goldenValidation(t *testing.T, c *goldenCase) {
	v := Validation{Source: c.Inputs.DataSources, Problem: c.Inputs.SampleUIDs, Turns: slices.Concat(c.Inputs.SampleTurns...)}
	var infos map[string][]any
	if err := json.Unmarshal(c.Inputs.Infos, &infos); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		x := Variable{Name: name}
		var texts []string
		for _, value := range infos[name] {
			switch value := value.(type) {
			case float64:
				x.Values = append(x.Values, value)
			case bool:
				x.Values = append(x.Values, map[bool]float64{true: 1}[value])
			case string:
				texts = append(texts, value)
			}
		}
		if len(x.Values) > 0 {
			v.Variables = append(v.Variables, x)
		}
		if name == "pred" {
			v.Answer = texts
		}
	}
	got := make(map[string]float64)
	for _, m := range v.Metrics(SubsetDraws{Draws: 1000, Seed: 42}) {
		name := m.Name
		if c.Outputs.Metrics != nil {
			_, name, _ = strings.Cut(name, "/")
		}
		if _, twice := got[name]; twice {
			t.Errorf("%s comes twice", name)
		}
		got[name] = m.Value
	}
	want := make(map[string]float64)
	for source, variables := range c.Outputs.Metrics {
		for variable, metrics := range variables {
			for metric, value := range metrics {
				want[source+"/"+variable+"/"+metric] = value
			}
		}
	}
	for name, value := range c.Metrics {
		want[name] = value.(float64)
		c.RTol, c.ATol = c.MetricsRTol, c.MetricsATol
	}
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Errorf("names %v, want %v", g, w)
	}
	for name, value := range want {
		c.compare(t, name, got[name], value)
	}
}
