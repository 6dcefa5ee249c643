package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/train"
	"exp/train/model"
	"exp/train/reward"
)

// distance builds the example of a reward program.
func distance(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "distance")
	if out, err := exec.Command("go", "build", "-o", path, "../../configs/rewards/distance").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

const rewarded = "sft={steps: 0}"

// voting is word problems whose completions vote.
var voting = []string{"task={kind: words, words: {largest_number: 9, steps: 1}}", "data.max_prompt_tokens=160", "model.arch.max_positions=224",
	"sft={steps: 150, problems_per_step: 16}", "sft.optim.lr=3e-3", "algo={kind: grpo}", "rollout.n=4", "reward={kind: majority, wrong: -1}"}

// Votes are rewards: they are recorded as such, and right or wrong stays the gold answer's.
func TestMajorityReward(t *testing.T) {
	l := newLab(t)
	p := l.plan(0, append(voting, "store.samples.train=all", "eval.final.suites=[]")...)
	r, _ := l.execute(p)
	samples, err := l.db.Samples(context.Background(), r.Run.ID, store.SampleQuery{Scope: "train", Step: 1})
	if err != nil || len(samples) == 0 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	rewards := map[float64]int{}
	for i := 0; i < len(samples); i += 4 {
		votes := map[string]int{}
		most := 0
		for _, s := range samples[i : i+4] {
			if s.Verdict.Answer != "" {
				votes[s.Verdict.Answer]++
				most = max(most, votes[s.Verdict.Answer])
			}
		}
		for _, s := range samples[i : i+4] {
			rewards[s.Reward]++
			switch {
			case s.Verdict.Answer == "" && s.Reward != -1, s.Verdict.Answer != "" && votes[s.Verdict.Answer] < most && s.Reward != -1,
				s.Reward == 1 && votes[s.Verdict.Answer] != most:
				t.Errorf("answer %q with %d of %d votes has reward %v", s.Verdict.Answer, votes[s.Verdict.Answer], most, s.Reward)
			}
		}
	}
	if rewards[1] == 0 || rewards[-1] == 0 || len(rewards) != 2 {
		t.Errorf("rewards %v", rewards)
	}
	l.samplesAgain(p)
}

// likely is word problems whose reward is the likelihood of their answers, which are learned.
var likely = append(slices.Clone(voting[:len(voting)-1]), "reward={kind: likelihood, wrong: -1, likelihood: {learn: 1}}",
	"rollout.max_new_tokens=40")

// Likelihoods are rewards, and what the grader says is recorded beside them. Completions without a place for the answer
// get reward.wrong.
func TestLikelihoodReward(t *testing.T) {
	l := newLab(t)
	p := l.plan(0, append(likely, "store.samples.train=all", "eval.final.suites=[]")...)
	r, _ := l.execute(p)
	samples, err := l.db.Samples(context.Background(), r.Run.ID, store.SampleQuery{Scope: "train", Step: 1})
	if err != nil || len(samples) == 0 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	right, placed := 0, 0
	for _, s := range samples {
		if s.Verdict.Answer != "" && s.Reward == -1 || s.Reward != -1 && !(s.Reward > 0 && s.Reward < 1) {
			t.Errorf("answer %q has reward %v", s.Verdict.Answer, s.Reward)
		}
		if s.Reward != -1 {
			placed++
		}
		if s.Verdict.Correct {
			right++
		}
	}
	if placed == 0 || placed == len(samples) || right == 0 {
		t.Errorf("%d of %d completions have a place, %d are right", placed, len(samples), right)
	}
	l.samplesAgain(p)
}

// A run whose reward is a program gives the same outputs with any number of workers;
// the program's contents are part of what it is, the path is not but as an argument.
func TestCommandReward(t *testing.T) {
	program := distance(t)
	sets := func(more ...string) []string {
		return append([]string{rewarded, "store.samples.train=all", "algo.kind=grpo", "reward={kind: command, command: [" + program + "], components: [correct, distance, score]}"}, more...)
	}
	a, b := newLab(t), newLab(t)
	p := a.plan(1, sets()...)
	first, q := a.execute(p)
	q2 := b.plan(1, sets("reward.workers=3", "reward.batch=2")...)
	if p.RID != q2.RID {
		t.Errorf("workers and batch make another run: %s, %s", p.RID, q2.RID)
	}
	second, _ := b.execute(q2)
	sameOutputs(t, a.outputs(first.Run.ID), b.outputs(second.Run.ID))

	curves, err := a.db.Metrics(context.Background(), first.Run.ID, "*", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]float64{}
	for _, c := range curves {
		if len(c.Values) > 0 {
			m[c.Name] = c.Values[0]
		}
	}
	for _, name := range []string{"reward/correct/mean", "reward/distance/mean", "reward/score/mean"} {
		if _, ok := m[name]; !ok {
			t.Errorf("no metric %s among %d", name, len(m))
		}
	}
	if d := m["reward/score/mean"] - m["critic/score/mean"]; d > 1e-6 || d < -1e-6 || m["reward/correct/mean"] != m["train/accuracy"] {
		t.Errorf("score %v and %v, correct %v and %v", m["reward/score/mean"], m["critic/score/mean"], m["reward/correct/mean"], m["train/accuracy"])
	}
	if len(q.warnings) > 0 {
		t.Errorf("warnings: %q", q.warnings)
	}
	sameParts(t, a, first.Run.ID)
	a.samplesAgain(p)

	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, append(code, 0), 0o777); err != nil {
		t.Fatal(err)
	}
	if other := a.plan(1, sets()...); other.RID == p.RID {
		t.Error("another program is the same run")
	}
}

// sameParts checks that the parts of the rewards of the first step lie with its samples:
// the one called score is the sample's reward, correct its verdict.
func sameParts(t *testing.T, l *lab, run int64) {
	t.Helper()
	rows, err := l.db.Samples(context.Background(), run, store.SampleQuery{Scope: "train", Step: 1})
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d samples, %v", len(rows), err)
	}
	packs := l.db.Blobs.NewPackReader()
	defer packs.Close()
	for _, row := range rows {
		var kept struct{ Components map[string]float64 }
		if err := packs.Read(row.Ref, &kept); err != nil {
			t.Fatal(err)
		}
		c := kept.Components
		if _, ok := c["distance"]; len(c) != 3 || !ok || c["score"] != row.Reward || (c["correct"] == 1) != row.Verdict.Correct {
			t.Fatalf("sample %d of %s: components %v of reward %v, verdict %+v", row.K, row.Item, c, row.Reward, row.Verdict)
		}
	}
}

// A failing reward program ends the run with exit code 8, and the log has its output.
func TestCommandRewardThatFails(t *testing.T) {
	l := newLab(t)
	program := filepath.Join(t.TempDir(), "reward.sh")
	script := "#!/bin/sh\necho starting >&2\nread row\necho no score today\nread row\n"
	if err := os.WriteFile(program, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	q := &quiet{}
	_, err := l.try(context.Background(), l.plan(1, rewarded, "reward={kind: command, command: [sh, "+program+"]}"), q)
	var broken *reward.BrokenError
	if !errors.As(err, &broken) || broken.ExitCode() != 8 || !strings.Contains(err.Error(), "line 1 of its output: not a JSON answer, while the row with id 1 (problem ") {
		t.Errorf("got %v", err)
	}
	var tried *stage.TrialError
	if !errors.As(err, &tried) || !strings.Contains(err.Error(), "its standard error:\n    starting") || !strings.Contains(err.Error(), "command: sh "+program) || tried.Hint() == "" {
		t.Errorf("got %v", err)
	}
	if slices.ContainsFunc(q.started, func(s string) bool { return s != "prepare" }) || len(q.warnings) > 0 {
		t.Errorf("started %q, warned %q: nothing should begin with a broken reward", q.started, q.warnings)
	}

	script = "#!/bin/sh\nwhile read row; do id=${row#*id\\\":\\\"}; echo \"{\\\"id\\\": \\\"${id%%\\\"*}\\\", \\\"error\\\": \\\"no\\\"}\"; done\n"
	if err := os.WriteFile(program, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = l.try(context.Background(), l.plan(1, rewarded, "reward={kind: command, command: [sh, "+program+"]}"), &quiet{})
	if !errors.As(err, &tried) || tried.ExitCode() != 8 || !strings.Contains(err.Error(), "the reward command: no") {
		t.Errorf("got %v", err)
	}
	// No answer needs a score, so the trial is a warning.
	tried, q = nil, &quiet{}
	_, err = l.try(context.Background(), l.plan(1, rewarded, "reward={kind: command, max_not_graded: 1, command: [sh, "+
		program+"]}"), q)
	if errors.As(err, &tried) || len(q.warnings) == 0 ||
		!strings.Contains(q.warnings[0], "no score for a trial answer to 3 problems: the reward command: no") {
		t.Errorf("got %v, warnings %q", err, q.warnings)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no module >&2; exit 3\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	res, err := l.try(context.Background(), l.plan(1, rewarded, "reward={kind: command, retries: 0, command: [sh, "+program+"]}"), &quiet{})
	if !errors.As(err, &tried) || tried.ExitCode() != 8 || !strings.Contains(err.Error(), "ended (exit status 3)") || !strings.Contains(err.Error(), "    no module") {
		t.Errorf("got %v", err)
	}
	// It is recorded although the stage before came from the cache.
	if why, err := l.db.Reason(t.Context(), res.Run.ID); res.Run.Status != store.Failed || !strings.Contains(why, "exit status 3") {
		t.Errorf("the run is %s: %q, %v", res.Run.Status, why, err)
	}
}

// A run whose grading fails keeps the steps before: it goes on after the last of them.
func TestCommandRewardThatIsDown(t *testing.T) {
	dir := t.TempDir()
	program, down := filepath.Join(dir, "reward.sh"), filepath.Join(dir, "down")
	script := `#!/bin/sh
n=0
while read row; do
	n=$((n+1)); id=${row#*id\":\"}; answer='"score": 0.5'
	if [ $n -gt 70 ] && [ -e ` + down + ` ]; then answer='"error": "down"'; fi
	echo "{\"id\": \"${id%%\"*}\", $answer}"
done
`
	for name, text := range map[string]string{program: script, down: ""} {
		if err := os.WriteFile(name, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	sets := []string{rewarded, "train.steps=4", "checkpoint.every_steps=0", "reward={kind: command, command: [sh, " +
		program + "]}"}
	l := newLab(t)
	res, err := l.try(context.Background(), l.plan(1, sets...), &quiet{})
	var ungraded *train.NotGradedError
	if !errors.As(err, &ungraded) || res.Run.Status != store.Failed || res.Run.Steps != 2 {
		t.Fatalf("%v; the run is %s after %d steps, want failed after 2", err, res.Run.Status, res.Run.Steps)
	}
	if saved, err := l.db.Checkpoints(t.Context(), res.Run.ID); err != nil || len(saved) != 1 || saved[0].Step != 2 {
		t.Errorf("checkpoints %+v, %v; want one of step 2", saved, err)
	}
	if err := os.Remove(down); err != nil {
		t.Fatal(err)
	}
	l.options.Resume = true
	got, q := l.execute(l.plan(1, sets...))
	if len(q.notes) == 0 || !strings.HasPrefix(q.notes[0], "checkpoint step 2 ok") {
		t.Errorf("notes %q", q.notes)
	}
	whole := newLab(t)
	if want, _ := whole.execute(whole.plan(1, sets...)); got.Run.Chain != want.Run.Chain {
		t.Errorf("chain %s, want %s", got.Run.Chain.Short(), want.Run.Chain.Short())
	}
}

// A judged run asks for each different message once; when it is executed again it asks
// for none, and gives the same bits. The key is nowhere in the store.
func TestJudgeReward(t *testing.T) {
	const key = "sk-not-to-be-seen"
	t.Setenv("EXP_TEST_JUDGE_KEY", key)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var body struct {
			Messages []struct{ Content string } `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("request: %v, %q", err, r.Header.Get("Authorization"))
		}
		fmt.Fprintf(w, `{"choices": [{"message": {"content": "{\"score\": %d}"}}]}`, len(body.Messages[0].Content)%7)
	}))
	defer server.Close()
	template := filepath.Join(t.TempDir(), "judge.txt")
	if err := os.WriteFile(template, []byte("How good is {response} for {prompt}?"), 0o666); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf("reward={kind: judge, judge: {url: %q, model: toy, template: %q, key_env: EXP_TEST_JUDGE_KEY}}", server.URL+"/v1", template)
	l := newLab(t)
	p := l.plan(1, rewarded, conf)
	first, _ := l.execute(p)
	n := asked.Load()
	if n == 0 {
		t.Fatal("the judge was never asked")
	}
	l.options.NoCache = true
	again, _ := l.execute(p) // other bits would be a divergence
	l.samplesAgain(p)
	if asked.Load() != n || again.Executed == 0 {
		t.Errorf("executed again: %d requests more, %d stages", asked.Load()-n, again.Executed)
	}
	err := filepath.WalkDir(l.db.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(key)) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || first.Executed == 0 {
		t.Error(err)
	}
	if err := os.WriteFile(template, []byte("How bad is {response} for {prompt}?"), 0o666); err != nil {
		t.Fatal(err)
	}
	if other := l.plan(1, rewarded, conf); other.RID == p.RID {
		t.Error("another template is the same run")
	}
}

// classifier writes a reward model for runs with the smoke recipe's tokenizer.
func (l *lab) classifier(dir string, seed int64) {
	l.t.Helper()
	tok, err := prompt.Tokenizer(&smoke(l.t).Run)
	if err != nil {
		l.t.Fatal(err)
	}
	c := stage.ModelConfig(&smoke(l.t).Run, tok.VocabSize())
	c.InitStd = 0.5
	m, err := model.New(l.be, c, model.Heads{LM: true, Value: true}, false)
	if err != nil {
		l.t.Fatal(err)
	}
	defer m.Close()
	m.Init(func(label string) uint64 { return ident.Seed(seed, label) })
	l.be.Copy(m.View("score.weight"), m.View("model.embed_tokens.weight").Slice(0, c.Width))
	l.writeModel(dir, "LlamaForSequenceClassification", tok, m, func(t model.Tensor) bool { return t.Name != "score.bias" && t.Name != "lm_head.weight" })
}

// A reward model is computed by the run's own engine; its weights are part of what the
// run is.
func TestModelReward(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	l.classifier(dir, 1)
	conf := "reward={kind: model, weights: " + dir + "}"
	p := l.plan(1, rewarded, conf)
	res, _ := l.execute(p)
	l.samplesAgain(p)
	curves, err := l.db.Metrics(context.Background(), res.Run.ID, "critic/score/m*", 1, 1)
	if err != nil || len(curves) != 3 || curves[0].Values[0] == curves[2].Values[0] {
		t.Errorf("scores: got %+v, %v, want different ones", curves, err)
	}
	l.classifier(dir, 2)
	if other := l.plan(1, rewarded, conf); other.RID == p.RID {
		t.Error("other weights are the same run")
	}

	// Where prompts are chats it reads the whole chat by its own template, which is part of
	// what the run is.
	ids := map[string]bool{}
	for _, own := range []string{"{% for m in messages %}{{ m.content }}{% endfor %}", "{% for m in messages %}{{ m['content'] }}{% endfor %}"} {
		if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(own), 0o666); err != nil {
			t.Fatal(err)
		}
		ids[l.plan(1, rewarded, conf).RID.String()] = true
	}
	if len(ids) != 1 {
		t.Error("a template that nothing reads changes the run")
	}
	p = l.plan(1, rewarded, conf, "data.chat="+filepath.Join(dir, "chat_template.jinja"), "data.max_prompt_tokens=64", "model.arch.max_positions=256")
	if res, _ := l.execute(p); res.Run.Status != store.Done {
		t.Errorf("the run ended as %s", res.Run.Status)
	}
	if d, ok := p.External.Reward["reward/chat template"]; !ok || d != p.External.Template {
		t.Errorf("the reward depends on %v", p.External.Reward)
	}
}
