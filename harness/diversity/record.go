package diversity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"exp/eval/stat"
	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

// ErrNotScored means that nobody scored the completions that were judged, so judgements have no place in the record.
var ErrNotScored = errors.New("its completions have no scores")

// Judging returns the settings that judgements of right, or of all, completions have.
func (o Options) Judging(right bool) recorded.Judging {
	return recorded.Judging{Model: o.Judge.Model, Template: Digest(o.Template), Passes: o.Passes, Excerpt: o.Excerpt,
		Seed: o.Seed, Right: right}
}

// Rated are the judged problems of a run.
type Rated struct {
	Of       recorded.Completions
	Problems []Problem
	Passes   [][]Pass // of each problem
	Wall     time.Duration
}

// Record adds judgements to a run: a stage that keeps all scores, and their mean among the scores of the evaluation
// that they belong to, where it replaces an earlier one. It writes nothing if the run has the same judgements already,
// and returns ErrNotScored or a *store.LockedError if it cannot.
func (o Options) Record(ctx context.Context, r Rated, right bool) (err error) {
	db, run := r.Of.DB, r.Of.Run
	lock, err := db.LockRun(run.RID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return err
	}
	evals, err := db.Evals(ctx, run.ID)
	if err != nil {
		return err
	}
	gen, score, of, err := scoredOf(stages, evals, r.Of.Query.Stage)
	if err != nil {
		return err
	}
	j := o.judgements(r, right)
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	out := store.IO{Role: recorded.RoleJudgements, Digest: ident.Sum(text), Size: int64(len(text)), Kind: "judgements"}
	if known(stages, out.Digest, score.Label) {
		return nil
	}
	s, err := o.stage(j, score.Label, inputs(gen, score, right), out)
	if err != nil {
		return err
	}
	if _, err := db.Blobs.PutBytes(text); err != nil {
		return err
	}
	s.Run = run.ID
	if s, err = db.BeginStage(ctx, s); err != nil {
		return err
	}
	row, mean := evaluated(j, of)
	result, err := json.Marshal(map[string]any{row.Metric: mean, "problems": row.Items, "url": o.Judge.URL})
	if err != nil {
		return err
	}
	return db.FinishStage(ctx, s.ID, []store.IO{out}, store.StageResult{Result: result, WallS: r.Wall.Seconds()},
		[]store.Eval{row})
}

// scoredOf finds the evaluation whose completions belong to stage home: its stages, and one of its scores.
func scoredOf(stages []store.Stage, evals []store.Eval, home int64) (
	gen, score store.Stage, of store.Eval, err error) {
	at := func(id int64) store.Stage {
		if i := slices.IndexFunc(stages, func(s store.Stage) bool { return s.ID == id }); i >= 0 {
			return stages[i]
		}
		return store.Stage{}
	}
	for _, s := range stages {
		if s.Home == home {
			gen = s
		}
	}
	for _, e := range slices.Backward(evals) {
		s := at(e.StageScore)
		if s.ID != 0 && s.Label == gen.Label && (e.StageGen == gen.ID || s.ID > gen.ID && reads(s, gen)) {
			return gen, s, e, nil
		}
	}
	return gen, score, of, ErrNotScored
}

// reads reports whether a scoring read the completions of gen.
func reads(score, gen store.Stage) bool {
	return slices.ContainsFunc(gen.Outputs, func(o store.IO) bool {
		return slices.ContainsFunc(score.Inputs, func(in store.IO) bool { return in.Digest == o.Digest })
	})
}

// judgements are what the record keeps of judged problems.
func (o Options) judgements(r Rated, right bool) recorded.Judgements {
	j := recorded.Judgements{Judging: o.Judging(right), Template: o.Template}
	for i, p := range r.Problems {
		j.Problems = append(j.Problems, recorded.JudgedProblem{ID: p.ID, Responses: len(p.Responses),
			Scores: scoresOf(r.Passes[i])})
	}
	return j
}

// known reports whether these are a label's newest judgements.
func known(stages []store.Stage, judgements ident.Digest, label string) bool {
	for _, s := range slices.Backward(stages) {
		if s.Kind == recorded.JudgeStage && s.Label == label && len(s.Outputs) > 0 {
			return s.Outputs[0].Digest == judgements
		}
	}
	return false
}

// inputs are what judgements depend on besides the judge.
func inputs(gen, score store.Stage, right bool) []store.IO {
	list := slices.Clone(gen.Outputs)
	if right {
		list = append(list, score.Outputs...)
	}
	return slices.DeleteFunc(list, func(o store.IO) bool { return o.Role != "completions" && o.Role != "verdicts" })
}

// stage is a judge stage before it begins.
func (o Options) stage(j recorded.Judgements, label string, inputs []store.IO, out store.IO) (store.Stage, error) {
	params := map[string]any{"judge.model": j.Judging.Model, "judge.template": j.Judging.Template,
		"judge.passes": j.Judging.Passes, "judge.excerpt": j.Judging.Excerpt,
		"judge.seed": fmt.Sprint(j.Judging.Seed), "judge.right": j.Judging.Right}
	inputs = append(inputs, out)
	of := map[string]ident.Digest{}
	for _, in := range inputs {
		of[in.Role] = in.Digest
	}
	sid, err := ident.Stage{Kind: recorded.JudgeStage, Params: params, Inputs: of}.SID()
	if err != nil {
		return store.Stage{}, err
	}
	text, err := json.Marshal(params)
	return store.Stage{SID: sid, Kind: recorded.JudgeStage, Label: label, Params: text, Inputs: inputs}, err
}

// evaluated returns the mean of judgements as a score of the evaluation of.
func evaluated(j recorded.Judgements, of store.Eval) (row store.Eval, mean float64) {
	var values []float64
	failed := 0
	for _, p := range j.Problems {
		if v, ok := p.Mean(); ok {
			values = append(values, v)
		}
		for _, s := range p.Scores {
			failed += int(stat.Indicator(s == 0))
		}
	}
	m := stat.ClusterMean(values, nil)
	row = of
	row.Metric, row.Value, row.SE = j.Judging.Metric(), m.Value, m.SE
	row.Lo, row.Hi = math.NaN(), math.NaN()
	if lo, hi := interval(m, least, most); lo != nil {
		row.Lo, row.Hi = *lo, *hi
	}
	row.Items, row.Clusters, row.InfraErrors = int64(len(values)), int64(len(values)), int64(failed)
	return row, m.Value
}
