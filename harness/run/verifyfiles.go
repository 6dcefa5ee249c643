package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
	"exp/train/checkpoint"
	"exp/train/rollout"
)

// files hashes every file that the run's record needs.
func (v *verifier) files(ctx context.Context) error {
	list, err := v.DB.BlobsOf(ctx, v.run.ID)
	if err != nil {
		return err
	}
	info := StageInfo{Kind: "blobs", Steps: len(list)}
	v.Watch.StageStart(info)
	recorded := make([]blob.Recorded, len(list))
	for i, b := range list {
		recorded[i] = blob.Recorded{Digest: b.Digest, Size: b.Size}
	}
	errs := v.DB.Blobs.VerifyAll(ctx, recorded, func(blobs int, _ int64) {
		v.Watch.StageProgress(blobs, len(list), nil)
	})
	if err := ctx.Err(); err != nil {
		v.Watch.StageDone(info, StageEnd{Stopped: true})
		return err
	}
	checked := map[ident.Digest]error{}
	for i, err := range errs {
		if err != nil {
			v.found(false, list[i].Use, "%v", err)
		}
		checked[list[i].Digest] = err
		v.v.Blobs++
	}
	err = errors.Join(v.configuration(ctx), v.sources(ctx, checked), v.folder(ctx), v.checkpoints(ctx))
	v.Watch.StageDone(info, StageEnd{Failed: err != nil})
	return err
}

// configuration compares the stored configuration, which lists and comparisons read, with its digest and with the
// plan, which comes from its source.
func (v *verifier) configuration(ctx context.Context) error {
	c, err := v.DB.Config(ctx, v.run.Config)
	if err != nil {
		return err
	}
	changed := ConfigChanged(c)
	if changed == "" && v.p != nil {
		stored, _, err := config.Stored(c.JSON)
		if err != nil {
			return err
		}
		changed = differsFrom(v.p.Config, stored, func(k *config.Key) bool { return k.Role == config.Semantic })
	}
	if changed != "" {
		v.found(false, "configuration", "%s", changed)
	}
	return nil
}

// sources proves that stages are as recorded, and that the stored sources have the digests that they name. checked are
// the blobs that have been hashed, with their errors.
func (v *verifier) sources(ctx context.Context, checked map[ident.Digest]error) error {
	stages, err := v.DB.Stages(ctx, v.run.ID)
	if err != nil {
		return err
	}
	for _, s := range stages {
		if changed := StageChanged(s); changed != "" {
			v.found(false, strings.TrimSpace(s.Kind+" "+s.Label), "%s", changed)
		}
	}
	trees, seen := map[ident.Digest]map[string]ident.Digest{}, map[ident.Digest]bool{}
	for _, s := range stages {
		if s.Code.IsZero() || seen[s.Code] {
			continue
		}
		seen[s.Code] = true
		src, err := v.DB.Source(ctx, s.Code)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		stored := trees[src.Archive]
		if stored == nil {
			damage, ok := checked[src.Archive]
			if !ok { // of a stage that did not end
				damage = v.DB.Blobs.Verify(src.Archive, src.Size)
			}
			if damage != nil {
				continue // found already
			}
			if stored, err = v.DB.Blobs.SumTree(src.Archive); err != nil {
				return err
			}
			trees[src.Archive] = stored
		}
		where := fmt.Sprintf("sources of %s (code %s)", s.Kind, s.Code.Short())
		if err := v.sourceFiles(where, src, stored, s.Code); err != nil {
			return err
		}
	}
	return nil
}

// sourceFiles compares the files that src lists with the stored ones, and their digest with code.
func (v *verifier) sourceFiles(where string, src store.Source, stored map[string]ident.Digest,
	code ident.Digest) error {
	files := make([]ident.File, len(src.Files))
	for i, f := range src.Files {
		sum, ok := stored[f.Path]
		if !ok {
			v.found(false, where, "the archive lacks %s", f.Path)
			return nil
		}
		if sum != f.SHA256 {
			v.found(false, where, "the stored file %s does not have the recorded digest", f.Path)
		}
		files[i] = ident.File{Path: f.Path, SHA256: sum}
	}
	d, err := ident.Code(src.Go, files)
	if err == nil && d != code {
		v.found(false, where, "their digest is %s", d.Short())
	}
	return err
}

// source reads the weights that the run started from, if they lie outside the store,
// and reports whether they are unchanged: the plan relied on a cache of digests.
func (v *verifier) source() (same bool, err error) {
	c := &v.p.Config.Run
	if c.Model.Init != "pretrained" {
		return true, nil
	}
	d, err := stage.ReadWeightsDigest(c)
	if err != nil {
		return false, err
	}
	v.v.Blobs++
	if d == v.p.External.Weights {
		return true, nil
	}
	v.found(false, "model.base", "the weights in %s have digest %s, but the run started from %s", c.Model.Base,
		d.Short(), v.p.External.Weights.Short())
	return false, nil
}

// folder compares the folders that merge wrote with the blobs of their files. A user may
// have moved them away.
func (v *verifier) folder(ctx context.Context) error {
	stages, err := v.DB.Stages(ctx, v.run.ID)
	if err != nil {
		return err
	}
	dir := v.DB.RunDir(v.run.RID)
	made := map[string][]ident.Digest{} // by role: merges may differ in the base name in adapters
	for _, s := range stages {
		if s.Kind == string(config.Merge) {
			for _, o := range s.Outputs {
				made[o.Role] = append(made[o.Role], o.Digest)
			}
		}
	}
	roles := sortedKeys(made)
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = filepath.Join(stage.FileOf(role))
	}
	digests, errs := fileDigests(dir, names)
	whole := "" // weights that lie in the folder in shards
	if made[stage.MergedIndex] != nil {
		whole = stage.MergedWeights
	}
	there := map[string]bool{} // folders with some file; a run may lack whole ones
	for i, role := range roles {
		folder, _ := stage.FileOf(role)
		there[folder] = there[folder] || !errors.Is(errs[i], fs.ErrNotExist)
	}
	for i, role := range roles {
		got, err := digests[i], errs[i]
		folder, _ := stage.FileOf(role)
		switch {
		case errors.Is(err, fs.ErrNotExist) && there[folder] && role != whole:
			v.found(false, names[i], "it is missing, and merge made it: exp resume %s writes it again",
				v.run.RID.Short())
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case !slices.Contains(made[role], got):
			v.found(false, names[i], "its bytes have digest %s, but merge made %s", got.Short(), made[role][0].Short())
		}
		v.v.Blobs++
	}
	return nil
}

// CheckCheckpoint returns nil if the files of a checkpoint's folder are as written.
func CheckCheckpoint(dir string) error {
	_, err := checkpoint.Open(dir)
	return err
}

// checkpoints verifies the checkpoints that still exist.
func (v *verifier) checkpoints(ctx context.Context) error {
	list, err := v.DB.Checkpoints(ctx, v.run.ID)
	if err != nil {
		return err
	}
	for _, c := range list {
		all := stage.CheckpointsDir(v.DB.RunDir(v.run.RID))
		dirs, err := fs.Glob(os.DirFS(all), fmt.Sprintf("train-*/step-%08d", c.Step))
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			dir = filepath.Join(all, dir)
			where := fmt.Sprintf("checkpoint of step %d", c.Step)
			if err := CheckCheckpoint(dir); err != nil {
				v.found(false, where, "%v", err)
				continue
			}
			if d, _, err := manifestOf(dir); err != nil {
				return err
			} else if d != c.Digest {
				v.found(false, where, "its manifest has digest %s, but %s is recorded", d.Short(), c.Digest.Short())
			}
			v.v.Blobs++
		}
	}
	return nil
}

// chain recomputes the chain from the recorded steps where they suffice: the store
// does not keep all bits of a NaN.
func (v *verifier) chain(ctx context.Context) error {
	if v.run.Foreign() != "" {
		return nil // other programs record no chain
	}
	steps, err := recordedSteps(ctx, v.DB, v.run.ID, store.AllSteps)
	if err != nil {
		return err
	}
	prev := ident.ChainStart(v.run.RID)
	var before map[string]float64
	for i, s := range steps {
		where := fmt.Sprintf("step %d", s.Det.Step)
		if s.Det.Step != int64(i)+1 {
			v.found(false, where, "it is where step %d should be", i+1)
			return nil
		}
		switch det, ok := store.ExactDet(s.Det, before, prev, s.Chain); {
		case ok:
			v.v.Chain++
			before = det.Metrics
		case store.HasNaN(s.Det):
			v.v.Inexact++
		default:
			v.found(false, where, "its chain %s does not follow from its recorded metrics and digests: one of them "+
				"was changed (exp verify --level prefix names it)", s.Chain.Short())
		}
		prev = s.Chain
	}
	if n := int64(len(steps)); n != v.run.Steps || n > 0 && prev != v.run.Chain {
		v.found(false, "run", "%d steps with chain %s are recorded, but the run's row says %d with %s", n,
			short(prev), v.run.Steps, short(v.run.Chain))
	}
	return nil
}

// summaries compares what lists print of the run with the rows that it sums up.
func (v *verifier) summaries(ctx context.Context) error {
	list, err := v.DB.Recount(ctx, v.run.ID)
	if err != nil {
		return err
	}
	for _, d := range list {
		v.found(false, d.Where(), "%s", d)
	}
	if v.run.Foreign() != "" {
		return nil // its configuration is not ours
	}
	c, err := v.DB.Config(ctx, v.run.Config)
	if err != nil {
		return err
	}
	stored, _, err := config.Stored(c.JSON)
	if err != nil {
		return err
	}
	if planned, ok := config.StoredAt(stored, "train.steps"); ok && planned != v.run.StepsTotal {
		v.found(false, "runs", "steps_total is %d, but the configuration gives %v", v.run.StepsTotal, planned)
	}
	return nil
}

// compareEvaluation compares an evaluation's rows with scoring it again.
func (v *verifier) compareEvaluation(ctx context.Context, i int, ev *stage.Evaluation) error {
	label := ev.Label
	scorer := v.scorer(label).Digest
	home := v.done[i-1].Home // the generation's: the suite may have been sampled in other ways too
	rows, err := v.DB.Samples(ctx, v.run.ID, store.SampleQuery{Scope: "eval", Stage: home, Scorer: scorer})
	if err != nil {
		return err
	}
	made, verdicts := map[sampleKey]store.Sample{}, map[sampleKey]rollout.Verdict{}
	for k, s := range ev.Samples {
		key := sampleKey{0, s.ProblemID, s.K}
		made[key], verdicts[key] = evalSample(0, s), ev.Verdicts[k]
	}
	all := len(made)
	for _, had := range rows {
		key := sampleKey{0, had.Item, had.K}
		where := fmt.Sprintf("%s: sample %d of %s", label, had.K, had.Item)
		got, ok := made[key]
		delete(made, key)
		if what := differs(had, got); !ok || what != "" {
			v.found(false, where, "%s differs from the stored completion", or(what, "it"))
			continue
		}
		if had.Verdict == nil {
			continue
		}
		v.v.Verdicts++
		if what := differsVerdict(had.Verdict, verdicts[key]); what != "" {
			v.found(false, where, "the recorded %s differs from the scorer's", what)
		}
	}
	if gen := v.done[i-1]; len(made) > 0 && gen.Home == gen.ID {
		_, kept, err := v.keepsAll(ctx, "store.samples.eval", gen)
		if err != nil {
			return err
		}
		if kept {
			v.found(false, label, "%d of its %d completions are missing in the table samples", len(made), all)
		}
	}
	return v.compareMetrics(ctx, i, ev)
}

func (v *verifier) compareMetrics(ctx context.Context, i int, ev *stage.Evaluation) error {
	want, err := v.evalRows(ctx, i, ev)
	if err != nil {
		return err
	}
	byName := map[string]store.Eval{}
	for _, e := range want {
		byName[e.Metric] = e
	}
	recorded, err := v.DB.MetricsOfStage(ctx, v.done[i].ID)
	if err != nil {
		return err
	}
	var missing []string
	for _, e := range want {
		if !slices.Contains(recorded, e.Metric) {
			missing = append(missing, e.Metric)
		}
	}
	if len(missing) > 0 {
		v.found(false, ev.Label, "the scores give %s, missing in the table evals", quantity.AtMost(missing, 4))
	}
	stored, err := v.DB.Evals(ctx, v.run.ID)
	if err != nil {
		return err
	}
	for _, had := range stored {
		e, ok := byName[had.Metric]
		if had.StageScore != v.done[i].ID || !ok {
			continue
		}
		if !sameBits(had.Value, e.Value) || !sameBits(had.SE, e.SE) || !sameBits(had.Lo, e.Lo) ||
			!sameBits(had.Hi, e.Hi) {
			v.found(false, fmt.Sprintf("%s: %s", ev.Label, had.Metric), "%v (%v to %v) is recorded, but the scores "+
				"give %v (%v to %v)", had.Value, had.Lo, had.Hi, e.Value, e.Lo, e.Hi)
		}
	}
	return nil
}

// evalSample returns the row of an evaluation completion, without its prompt's length.
func evalSample(home int64, s eval.Sample) store.Sample {
	c := s.Completion
	return store.Sample{Stage: home, Scope: "eval", Item: s.ProblemID, K: s.K, OutTokens: int64(len(c.Tokens)),
		Finish: c.Finish.String(), Reward: math.NaN(), LogProbSum: sum(c.LogProbs)}
}
