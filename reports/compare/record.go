package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
)

// record holds the data that a comparison needs from a run.
type record struct {
	run         store.Run
	config      map[string]string      // text of each key that has an effect, by path
	vary        []string               // compare.vary
	minSeeds    int                    // compare.min_seeds
	stages      map[string]store.Stage // newest finished one, by stageKey
	stoppedS    float64                // seconds of training that was stopped and later resumed
	evaluations []evaluation           // in the order of scoring
	all         []store.Stage          // in starting order
}

// evaluation is one scoring of a run on a suite.
type evaluation struct {
	suite    string // with startSuffix for the initial weights
	digest   ident.Digest
	protocol ident.Digest
	samples  int
	gen      store.Stage       // that sampled; zero if unknown
	score    store.Stage       // that scored; the newest has the largest ID
	settings map[string]string // text of the protocol's keys, by path
	examples string            // digest of the solved problems before each; empty: none
	reward   string            // what judged, where that was the run's reward: its settings and digests
	how      string            // all that a score depends on, as one text
	code     [2]ident.Digest   // of the sources that generated and scored
	scores   ident.Digest      // blob; zero if none
	values   map[string]float64
}

// startSuffix ends the suite name of an evaluation before training.
const startSuffix = ident.StartSuffix

// reader reads records. It reads the configuration and initial scores that an arm's runs
// share once.
type reader struct {
	db      *store.DB
	configs map[ident.Digest]*settings
	scores  map[ident.Digest]*scores
	walls   map[ident.Digest]float64 // seconds of reused stages, by sid
}

func newReader(db *store.DB) *reader {
	return &reader{db: db, configs: map[ident.Digest]*settings{}, scores: map[ident.Digest]*scores{},
		walls: map[ident.Digest]float64{}}
}

func (rd *reader) record(ctx context.Context, run store.Run) (*record, error) {
	s, err := rd.settings(ctx, run)
	if err != nil {
		return nil, err
	}
	r := &record{run: run, config: s.text, vary: s.vary, minSeeds: s.minSeeds, stages: map[string]store.Stage{}}
	stages, err := rd.db.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	r.all = stages
	byID := map[int64]store.Stage{}
	for _, st := range stages {
		byID[st.ID] = st
		if st.Status == store.Done || st.Status == store.Cached || st.Status == store.Repeated {
			r.stages[stageKey(st.Kind, st.Label)] = st
		}
		if st.Status == store.Interrupted && st.Kind == string(config.Train) && !st.Ended.IsZero() {
			r.stoppedS += st.Ended.Sub(st.Started).Seconds()
		}
	}
	evals, err := rd.db.Evals(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	return r, r.addEvaluations(evals, byID, stages)
}

// stageKey identifies a stage within a run.
func stageKey(kind, label string) string { return kind + "\x00" + label }

// addEvaluations groups the rows by scoring.
func (r *record) addEvaluations(evals []store.Eval, byID map[int64]store.Stage, stages []store.Stage) error {
	at := map[int64]int{}
	for _, e := range evals {
		i, ok := at[e.StageScore]
		if !ok {
			i = len(r.evaluations)
			at[e.StageScore] = i
			score := byID[e.StageScore]
			ev := evaluation{suite: e.SuiteName, digest: e.SuiteDigest, protocol: e.Protocol, samples: int(e.N),
				gen: generation(stages, score, e.StageGen), score: score,
				settings: map[string]string{}, values: map[string]float64{}}
			if err := ev.describe(); err != nil {
				return fmt.Errorf("stage %s of run %s: %w", score.Kind, r.run.RID.Short(), err)
			}
			r.evaluations = append(r.evaluations, ev)
		}
		r.evaluations[i].values[e.Metric] = e.Value
	}
	return nil
}

// generation finds the run's stage that sampled the completions scored by score: the one
// that an evaluation names, or the run's own reuse of it.
func generation(stages []store.Stage, score store.Stage, id int64) (gen store.Stage) {
	for _, s := range stages {
		if s.ID == id {
			return s
		}
		if s.Kind == string(config.EvalGen) && s.Label == score.Label && s.ID < score.ID {
			gen = s
		}
	}
	return gen
}

// describe fills in an evaluation from its stages.
func (ev *evaluation) describe() error {
	ev.code = [2]ident.Digest{ev.gen.Code, ev.score.Code}
	ev.scores = store.DigestOf(ev.score.Outputs, config.RoleScores)
	for _, st := range []store.Stage{ev.gen, ev.score} {
		if len(st.Params) == 0 {
			continue
		}
		params, err := flatten(st.Params)
		if err != nil {
			return err
		}
		for path, text := range params {
			if scoring(path) {
				ev.settings[path] = text
			}
		}
		ev.judged(st, params)
	}
	if d := store.DigestOf(ev.gen.Inputs, config.RoleExamples); !d.IsZero() {
		ev.examples = d.String()
	}
	if len(ev.settings) == 0 { // only the digest is known
		ev.how = ev.protocol.String()
	}
	for _, path := range sortedKeys(ev.settings) {
		ev.how += path + ": " + ev.settings[path] + "\n"
	}
	ev.how += ev.examples + ev.reward
	return nil
}

// judged describes the reward that a stage scored by, if it did.
func (ev *evaluation) judged(st store.Stage, params map[string]string) {
	if st.Kind != string(config.EvalScore) {
		return
	}
	var parts []string
	for path, text := range params {
		if k, ok := config.Lookup(path); ok && k.Judges {
			parts = append(parts, path+": "+text)
		}
	}
	if len(parts) == 0 {
		return
	}
	for _, in := range st.Inputs {
		if strings.HasPrefix(in.Role, "reward/") {
			parts = append(parts, in.Role+": "+in.Digest.Short())
		}
	}
	slices.Sort(parts)
	ev.reward = strings.Join(parts, "; ")
}

// scoring reports whether a key affects how a suite is scored. The list of suites and the
// k of pass@k, computed from the same samples, do not.
func scoring(path string) bool {
	return strings.HasPrefix(path, protocolKeys) && path != protocolKeys+"suites" && path != protocolKeys+"pass_k"
}

// find returns the newest evaluation on a suite with the given scoring settings, or with
// any if how is empty.
func (r *record) find(suite, how string) *evaluation {
	var found *evaluation
	for i := range r.evaluations {
		ev := &r.evaluations[i]
		if ev.suite == suite && (how == "" || ev.how == how) && (found == nil || ev.score.ID > found.score.ID) {
			found = ev
		}
	}
	return found
}

// evaluated reports whether the run has results to compare.
func (r *record) evaluated() bool {
	for i := range r.evaluations {
		if !strings.HasSuffix(r.evaluations[i].suite, startSuffix) {
			return true
		}
	}
	return false
}

// scoresOf reads the per-problem scores of an evaluation, nil if it kept none.
func (rd *reader) scoresOf(ev *evaluation) (*scores, error) {
	if ev == nil || ev.scores.IsZero() {
		return nil, nil
	}
	if s, ok := rd.scores[ev.scores]; ok {
		return s, nil
	}
	b, err := rd.db.Blobs.Bytes(ev.scores)
	if err != nil {
		return nil, err
	}
	s := new(scores)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("scores %s: %w", ev.scores.Short(), err)
	}
	rd.scores[ev.scores] = s
	return s, nil
}
