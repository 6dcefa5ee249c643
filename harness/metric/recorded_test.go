package metric

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exp/eval"
	"exp/eval/stat"
	"exp/train/rl"
)

// Every metric that something records is in the catalogue, and everything in the
// catalogue is recorded by something.
func TestCatalogueIsWhatIsRecorded(t *testing.T) {
	names := recorded(t)
	entries := map[string]bool{}
	for _, name := range names {
		m, ok := entryOf(name)
		if !ok {
			t.Errorf("%s is recorded and not in the catalogue", name)
		}
		entries[m.Name] = true
	}
	for _, m := range All() {
		if !entries[m.Name] {
			t.Errorf("%s is in the catalogue, and nothing records it", m.Name)
		}
	}
}

// entryOf finds the catalogue's row of a name, unlike Find with its capitals.
func entryOf(name string) (Metric, bool) {
	x := catalogue()
	if i, ok := x.byName[name]; ok {
		return x.list[i], true
	}
	for _, f := range x.families() {
		if f.pattern.MatchString(name) {
			return x.list[f.at], true
		}
	}
	return Metric{}, false
}

// returned calls everything of train/rl that returns metrics, so that it cannot miss a new function.
func TestEveryFunctionIsCalled(t *testing.T) {
	var declared []string
	for _, f := range parsed(t, "../../train/rl") {
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() && returnsMetrics(f.Type) {
				declared = append(declared, receiver(f)+f.Name.Name)
			}
		}
	}
	slices.Sort(declared)
	if called := slices.Sorted(maps.Keys(returned())); len(declared) < 10 || !slices.Equal(declared, called) {
		t.Errorf("train/rl declares %q, and the catalogue is compared with %q", declared, called)
	}
}

func returnsMetrics(f *ast.FuncType) bool {
	if f.Results == nil || len(f.Results.List) != 1 {
		return false
	}
	return isMetrics(f.Results.List[0].Type)
}

// isMetrics reports whether a type is []Metric.
func isMetrics(x ast.Expr) bool {
	list, ok := x.(*ast.ArrayType)
	return ok && isMetric(list.Elt)
}

func isMetric(x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && name.Name == "Metric"
}

// receiver is the type of a method with a dot; "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	x := f.Recv.List[0].Type
	if pointer, ok := x.(*ast.StarExpr); ok {
		x = pointer.X
	}
	return x.(*ast.Ident).Name + "."
}

// returned holds what the functions of train/rl return with every setting that adds some, by function.
func returned() map[string][]rl.Metric {
	data := rl.Data[float32]{Rows: rl.Rows{0, 2}, Mask: []bool{true, true}, Score: []float32{1}, Reward: []float32{1},
		Adv: make([]float32, 2), Ret: make([]float32, 2), Value: make([]float32, 2), PromptLen: []int{1},
		ResponseLen: []int{2}, MaxPrompt: 1, MaxResponse: 2, Turns: []int{2}}
	batch := &rl.Batch[float32]{Rows: data.Rows, Mask: data.Mask, Coef: make([]float64, 2), LogProb: make([]float32, 2),
		OldLogProb: make([]float32, 2), RefLogProb: make([]float32, 2), Adv: data.Adv, Weight: []float32{1, 1}}
	var pair rl.DPOStats
	one := []float64{0, 0}
	rl.DPO(one, &rl.Batch[float64]{Rows: rl.Rows{0, 1, 2}, Mask: []bool{true, true}, LogProb: one, OldLogProb: one,
		Adv: one}, []rl.Preference{{Side: 1}, {Side: -1}}, &pair)
	var shown rl.DemonstrationStats
	rl.DemonstrationTerm(make([]float32, 2), batch, data.Mask, rl.Demonstrations{Weight: 1, Shaping: 1}, &shown)
	turns := new(rl.Turns)
	turns.Add(0, 1, 0, 1, true)
	of := map[string][]rl.Metric{
		"DemonstrationStats.Metrics": shown.Metrics(),
		"DPOStats.Metrics":           pair.Metrics(),
		"DataMetrics":                rl.DataMetrics(data),
		"DistillStats.Metrics":       new(rl.DistillStats).Metrics(),
		"GVPOStats.Metrics":          new(rl.GVPOStats).Metrics(),
		"LengthMetrics":              rl.LengthMetrics([]int{3}, [][]int{{0}}),
		"MegatronStats.Metrics":      new(rl.MegatronStats).Metrics(),
		"PolicyStats.Metrics":        new(rl.PolicyStats).Metrics(),
		"PrimeStats.Metrics":         new(rl.PrimeStats).Metrics(),
		"ProbDiff":                   rl.ProbDiff([]float32{-1, -1}, []float32{-1, -1}, data.Mask),
		"ThroughputMetrics":          rl.ThroughputMetrics(2, 1, 1),
		"TimingMetrics":              nil, // of the laps that the loop spells: spelled
		"ValueStats.Metrics":         new(rl.ValueStats).Metrics(),
		"Turns.Metrics":              turns.Metrics(),
		"VarianceProxies":            rl.VarianceProxies(batch, make([]float32, 2), 1),
	}
	add := func(name string, list []rl.Metric) { of[name] = append(of[name], list...) }
	for _, suffix := range []string{"", "_before"} {
		add("PrimeMetrics", rl.PrimeMetrics([]float64{0, 0}, []bool{true, false}, []int{0, 0}, suffix))
	}
	for _, v := range rl.FlowRLVariants() {
		v.Loss.RatioFractions = v.Loss.Clip.High > 0
		var s rl.FlowRLStats
		rl.FlowRL(make([]float32, 2), make([]float32, 1), batch, make([]float32, 1), 1, v.Loss, &s)
		add("FlowRLStats.Metrics", s.Metrics())
	}
	for _, weights := range []rl.RolloutWeights{rl.TokenWeights, rl.GeometricWeights} {
		c := rl.Correction{Weights: weights, Low: 0.5, High: 2, Normalize: true,
			Reject: []rl.Rejection{{Span: rl.SpanMean, Kind: rl.KLK1, Low: 0.5, High: 2}}}
		var s rl.CorrectionStats
		rl.Correct(make([]float32, 2), make([]bool, 2), batch.LogProb, batch.OldLogProb, data.Mask, data.Rows, c, &s)
		add("CorrectionStats.Metrics", s.Metrics())
	}
	return of
}

// recorded lists the names of metrics: the ones that functions of train/rl and eval return, and the ones that the
// sources of train/rl and of the loop spell.
func recorded(t *testing.T) []string {
	names := map[string]bool{}
	for _, list := range returned() {
		for _, m := range list {
			names[m.Name] = true
		}
	}
	for _, f := range parsed(t, "../../train/rl") {
		for _, name := range metricsIn(f) {
			names[name] = true
		}
	}
	measured := append(eval.Definitions([]int{4}), eval.Families()...)
	for _, d := range measured {
		names[d.Name], names[validationPrefix+d.Name] = true, true
	}
	names["judged_diversity"], names["judged_diversity_right"] = true, true // exp diversity
	v := stat.Validation{Source: []string{"s", "s"}, Problem: []string{"p",
		"p"}, Turns: []int{2, 4}, Variables: []stat.Variable{{Name: "reward", Values: []float64{0, 1}}}}
	for _, m := range v.Metrics(stat.SubsetDraws{Draws: 1}) {
		names[m.Name] = true
	}
	spelled(t, names)
	return slices.Sorted(maps.Keys(names))
}

// metricsIn lists the metrics that a source spells in full, Metric{"actor/ppo_kl", x}, whatever adds them.
func metricsIn(f *ast.File) (names []string) {
	add := func(x ast.Expr) {
		if lit, ok := x.(*ast.CompositeLit); ok && len(lit.Elts) > 0 {
			if name := text(lit.Elts[0]); strings.Contains(name, "/") && !strings.Contains(name, "NAME") {
				names = append(names, name)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && isMetric(lit.Type) {
			add(lit)
		} else if ok && isMetrics(lit.Type) {
			for _, x := range lit.Elts {
				add(x)
			}
		}
		return true
	})
	return names
}

// parsed returns the sources of a folder that are not tests.
func parsed(t *testing.T, dir string) (list []*ast.File) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// spelled adds the names in literals: rl.Metric{Name: "actor/lr"} of the loop and of the
// stages, the phases that a stopwatch laps, and the exact results of an evaluation.
func spelled(t *testing.T, names map[string]bool) {
	laps := []string{"step", "testing"} // of the whole step, and of the evaluation that harness/stage times
	for _, dir := range []string{"../../train", "../stage", "../../eval", "../../cmd/exp"} {
		for _, f := range parsed(t, dir) {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Name" {
						if name := text(n.Value); strings.Contains(name, "/") {
							names[name] = true
						}
					}
				case *ast.CallExpr:
					switch call := n.Fun.(type) {
					case *ast.SelectorExpr:
						if call.Sel.Name == "lap" {
							laps = append(laps, text(n.Args[0]))
						}
					case *ast.Ident: // exactMetrics, and shares over problems
						if call.Name == "one" || call.Name == "shareMetric" && text(n.Args[0]) != "NAME" {
							names[text(n.Args[0])] = true
						}
					}
				case *ast.AssignStmt: // measured["timing_s/testing"]
					if x, ok := n.Lhs[0].(*ast.IndexExpr); ok && strings.HasPrefix(text(x.Index), "timing_s/") {
						names[text(x.Index)] = true
					}
				}
				return true
			})
		}
	}
	for name := range names {
		// A buffer of a checkpoint is called after its learner: NAME/params.
		if strings.Contains(name, "{") || name == "val/" || strings.HasPrefix(name, "NAME/") {
			delete(names, name)
		}
	}
	var timed []rl.Lap
	for _, phase := range laps {
		timed = append(timed, rl.Lap{Phase: phase, Seconds: 1})
	}
	for _, m := range rl.TimingMetrics(timed, 1, 1) {
		names[m.Name] = true
	}
	names[eval.PassPrefix+"math"], names[eval.RewardPrefix+"math"], names[eval.SourcePrefix+"math"] = true, true, true
	names[eval.GraderPrefix+"math"], names[eval.FormPrefix+"box"], names[eval.FollowedPrefix+"ifeval"] = true, true, true
	names[eval.ScorePrefix+"anls"] = true
}

// text is the constant text of an expression, with NAME for every other part.
func text(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(x.Value)
		return s
	case *ast.BinaryExpr:
		return text(x.X) + text(x.Y)
	case *ast.KeyValueExpr:
		return text(x.Value)
	}
	return "NAME"
}
