package compare

import (
	"encoding/hex"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"exp/eval"
	"exp/eval/stat"
	"exp/experiments/ident"
)

// table holds a suite's per-problem scores by metric.
type table struct {
	items    int
	clusters int
	names    []string
	panels   []panel
	order    []int  // of arms, independent of the caller's
	seed     uint64 // from the digests of all scores
}

// panel holds the scores on one metric of the problems with a value in every run.
type panel struct {
	def      eval.Definition
	clusters []string      // [problems]
	values   [][][]float64 // [arms][runs][problems]
	mean     [][]float64   // [arms][problems] over the arm's runs
	ofRun    [][]float64   // [arms][runs] mean over the problems with a value in that run
	starts   [][][]float64 // [arms][evaluations before training][problems with a value]
}

// tableOf collects a suite's scores. The table has no panels without per-problem scores,
// or with only one cluster, which says nothing about others.
func (c *comparison) tableOf(m *measured, ks []int) (*table, error) {
	t := &table{}
	if m.scores == nil {
		return t, nil
	}
	items := m.scores[c.arms[0].runs[0]].Items
	t.items = len(items)
	for i := range items {
		t.names = append(t.names, items[i].Cluster)
	}
	if _, t.clusters = stat.Clusters(len(items), t.names); t.clusters < 2 {
		return t, nil
	}
	t.identify(c, m)
	columns, err := c.columnsOf(m, ks)
	if err != nil {
		return nil, err
	}
	for _, col := range columns {
		if p, ok := c.panelOf(t, m, col); ok {
			t.panels = append(t.panels, p)
		}
	}
	return t, nil
}

// column is a metric with its value of each problem of an evaluation, NaN if missing.
type column struct {
	eval.Definition
	of func(*evaluation, *scores) []float64
}

// columnsOf lists the metrics that all runs measured on a suite.
func (c *comparison) columnsOf(m *measured, ks []int) (list []column, err error) {
	options := c.comparesOptions(m)
	for _, d := range definitions(ks) {
		if c.measuredBy(m, d) && !(options && eval.OfSamples(d.Name)) {
			list = append(list, column{d, func(_ *evaluation, s *scores) []float64 { return valuesOf(d, s.Items) }})
		}
	}
	judged, err := c.judgedColumns(m)
	return append(list, judged...), err
}

// comparesOptions reports whether a run's answers are the likeliest options, which it has not sampled.
func (c *comparison) comparesOptions(m *measured) (some bool) {
	c.records(func(_ int, r *record) {
		_, has := m.of[r].values[eval.OptionProb]
		some = some || has
	})
	return some
}

// measuredBy reports whether all runs measured a metric. The problems of an imported run
// have right samples and rewards; their answers, texts and lengths are unknown, not 0.
func (c *comparison) measuredBy(m *measured, d eval.Definition) bool {
	all := true
	c.records(func(_ int, r *record) {
		_, recorded := m.of[r].values[d.Name]
		all = all && (recorded || d.K > 0 || d.Name == "reward_mean" || r.run.Foreign() == "")
	})
	return all
}

// identify derives the resampling seed from the scores.
func (t *table) identify(c *comparison, m *measured) {
	keys := make([]string, len(c.arms))
	for a, s := range c.arms {
		t.order = append(t.order, a)
		for _, r := range s.runs {
			keys[a] += hex.EncodeToString(m.of[r].scores[:])
		}
	}
	slices.SortStableFunc(t.order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	slices.Sort(keys)
	t.seed = ident.Seed(0, "compare/"+m.of[c.arms[0].runs[0]].digest.String()+"/"+strings.Join(keys, ","))
}

// panelOf returns a metric's panel; ok is false if the problems with a value in every run
// form fewer than two clusters.
func (c *comparison) panelOf(t *table, m *measured, col column) (p panel, ok bool) {
	p = panel{def: col.Definition}
	all := make([][][]float64, len(c.arms)) // NaN: no value
	there := make([]bool, t.items)
	for i := range there {
		there[i] = true
	}
	for a, s := range c.arms {
		p.ofRun = append(p.ofRun, nil)
		for _, r := range s.runs {
			row := col.of(m.of[r], m.scores[r])
			for i, v := range row {
				there[i] = there[i] && !math.IsNaN(v)
			}
			all[a] = append(all[a], row)
			p.ofRun[a] = append(p.ofRun[a], meanOf(row))
		}
	}
	for i, has := range there {
		if has {
			p.clusters = append(p.clusters, t.names[i])
		}
	}
	if _, G := stat.Clusters(len(p.clusters), p.clusters); G < 2 {
		return p, false
	}
	for a := range all {
		p.addArm(all[a], there)
		p.starts = append(p.starts, c.startsOf(m, col, a))
	}
	return p, true
}

// valuesOf returns a metric's value per problem, NaN if missing.
func valuesOf(d eval.Definition, items []eval.Item) []float64 {
	row := make([]float64, len(items))
	for i := range items {
		v, ok := d.Value(items[i])
		if !ok {
			v = math.NaN()
		}
		row[i] = v
	}
	return row
}

// meanOf returns the mean of the values that are there; NaN if none is.
func meanOf(row []float64) float64 {
	have := slices.DeleteFunc(slices.Clone(row), math.IsNaN)
	if len(have) == 0 {
		return math.NaN()
	}
	return stat.ClusterMean(have, nil).Value
}

// addArm adds an arm's runs, [runs][all problems].
func (p *panel) addArm(runs [][]float64, there []bool) {
	var values [][]float64
	mean := make([]float64, len(p.clusters))
	for _, row := range runs {
		kept := make([]float64, 0, len(mean))
		for i, v := range row {
			if there[i] {
				mean[len(kept)] += v
				kept = append(kept, v)
			}
		}
		values = append(values, kept)
	}
	for i := range mean {
		mean[i] /= float64(len(runs))
	}
	p.values, p.mean = append(p.values, values), append(p.mean, mean)
}

// startsOf returns the values of an arm's evaluations before training, each once.
func (c *comparison) startsOf(m *measured, col column, arm int) [][]float64 {
	var list [][]float64
	seen := map[*scores]bool{}
	for _, r := range c.arms[arm].runs {
		s := m.before[r]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		if row := slices.DeleteFunc(col.of(m.start[r], s), math.IsNaN); len(row) > 0 {
			list = append(list, row)
		}
	}
	return list
}

// fill computes the metrics of the panels concurrently: each depends on its panel alone.
func (t *table) fill(c *comparison, metrics []Metric) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range t.panels {
		wg.Go(func() {
			slots <- struct{}{}
			c.fillMetric(t, &t.panels[i], &metrics[i])
			<-slots
		})
	}
	wg.Wait()
}
