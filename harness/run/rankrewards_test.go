package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/kernels/cpu"
	"exp/train/ranks"
)

// rankedRun is a stage of a run that ranks execute within this process.
type rankedRun struct {
	l    *lab
	p    *plan.Run
	kind config.Stage
	root int64
	sid  ident.Digest
	in   map[string]ident.Digest
	// dir is where checkpoints are, and which one the stage continues from; empty: it only repeats what is recorded.
	dir     string
	stepped func(step int64) // called after each step, if it is not nil
}

// ranked returns a stage of a run, which this executes first.
func (l *lab) ranked(p *plan.Run, kind config.Stage) rankedRun {
	l.t.Helper()
	res, _ := l.execute(p)
	row, in := l.stageOf(res.Run.ID, string(kind)), map[string]ident.Digest{}
	for _, x := range row.Inputs {
		in[x.Role] = x.Digest
	}
	if val, ok := l.outputs(res.Run.ID)["prepare[]/"+config.RoleVal]; ok && kind == config.Train {
		in[config.RoleVal] = val // which does not change the stage's key
	}
	i := slices.IndexFunc(p.Stages, func(s plan.Stage) bool { return s.Kind == kind })
	return rankedRun{l: l, p: p, kind: kind, root: p.Stages[i].Root, sid: row.SID, in: in}
}

// on executes the stage on size ranks with settings over its configuration. It returns what the first one recorded, and
// the error of each.
func (x rankedRun) on(size int, sets ...string) (trace string, errs []error) {
	x.l.t.Helper()
	c := x.p.Config
	if len(sets) > 0 {
		var err error
		if c, err = config.Load(config.Input{File: "again", Data: []byte(c.YAML()), Sets: sets}); err != nil {
			x.l.t.Fatal(err)
		}
	}
	var lines []string
	note := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	validation := func(measured map[string]float64) (list []string) {
		for name, v := range measured {
			if strings.HasPrefix(name, "val") {
				list = append(list, fmt.Sprint(name, " ", v))
			}
		}
		slices.Sort(list)
		return list
	}
	hooks := stage.Hooks{Validated: func(step int, m map[string]float64) error {
		note("start %d %v", step, validation(m))
		return nil
	},
		Event: func(kind, text string) { note("%s: %s", kind, text) },
		Step: func(s stage.Step) error {
			note("%s %v %v %v", s.Chain.Short(), s.Det.Metrics["critic/score/mean"], validation(s.Measured), s.Events)
			for _, x := range s.Trajectories {
				note("  %+v", x.Verdict)
			}
			if x.stepped != nil {
				x.stepped(s.Det.Step)
			}
			return nil
		}}
	dir, again := x.dir, x.dir == ""
	if again {
		dir = x.l.t.TempDir()
	}
	errs = make([]error, size)
	var done sync.WaitGroup
	for r, group := range ranks.InProcess(size) {
		be, err := cpu.Open(cpu.Options{Threads: 1})
		if err != nil {
			x.l.t.Fatal(err)
		}
		defer be.Close()
		g := &Ranks{Group: group, hosts: make([]string, size)}
		e := &stage.Env{Config: c, Backend: be, Blobs: x.l.db.Blobs, Dir: dir, RID: x.p.RID, SID: x.sid, Seed: x.root,
			Prompter: x.p.External.Prompter, Again: again}
		if r == 0 {
			e.Hooks = hooks
		}
		done.Go(func() {
			leave, err := g.join(e, x.kind)
			defer leave()
			var out *stage.Outcome
			if err == nil {
				out, err = stage.Run(context.Background(), e, x.kind, "", x.in)
			}
			if err == nil && r == 0 {
				note("%s", out.Outputs[0].Digest)
			}
			if errs[r] = err; err != nil {
				group.Close() // as the end of a process does
			}
		})
	}
	ended := make(chan bool)
	go func() { done.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		x.l.t.Fatal("the ranks hang")
	}
	return strings.Join(lines, "\n"), errs
}

// same executes the stage on one rank and on several, and reports where they differ.
func (x rankedRun) same(sizes []int, sets ...string) {
	x.l.t.Helper()
	want, errs := x.on(1)
	if errs[0] != nil || strings.Count(want, "\n") < 1 {
		x.l.t.Fatalf("one rank: %v\n%s", errs, want)
	}
	for _, size := range sizes {
		got, errs := x.on(size, sets...)
		if err := errors.Join(errs...); err != nil {
			x.l.t.Errorf("%d ranks: %v", size, err)
		}
		if got != want {
			x.l.t.Errorf("%d ranks:\n%s\nwant\n%s", size, got, want)
		}
	}
}

// Programs that all ranks run, each in its own sandbox, give the verdicts of one process.
func TestProgramsOnRanks(t *testing.T) {
	needsSandbox(t)
	l := newLab(t)
	l.ranked(l.plan(0, programs, "sft.steps=0", "train={steps: 1, prompts_per_step: 4, prompts_per_update: 4}", "eval.online.problems=4",
		"eval.final.suites=[]", "algo.kind=grpo", "compute.threads=1"), config.Train).same([]int{2})
}

// Reward models on all ranks give the verdicts, the trajectory and the validations of one process.
func TestRewardModelsOnRanks(t *testing.T) {
	l := newLab(t)
	short := []string{"sft.steps=0", "train.steps=2", "eval.final.suites=[]", "algo.kind=grpo"}
	classifier, writer, template := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "judge.txt")
	l.classifier(classifier, 1)
	l.counting(writer, "5")
	if err := os.WriteFile(template, []byte("{prompt}{response}"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*plan.Run{
		"model": l.plan(0, append(short, "reward={kind: model, weights: "+classifier+"}")...),
		"genrm": l.plan(0, append(short, fmt.Sprintf("reward={kind: genrm, weights: %s, judge: {template: %s, pattern: '^([0-9])', "+
			"max_tokens: 16, context: 40}, max_not_graded: 1}", writer, template))...),
		"trained": rewardRun(l, ratedFile(t, 1), "algo.kind=grpo", "eval.final.suites=[]"),
		"steps": l.plan(0, append(chatSets(l, testTemplate, "reward={kind: trained, steps: mean, split: '1', credit: sum, step_right: 0.5}"),
			"algo.kind=grpo_process", "eval.final.suites=[]",
			"reward_model={kind: steps, steps: 4, answers_per_step: 4, max_tokens: 60, separator: '|', optim: {lr: 0.01}}",
			"reward_model.source="+stepFile(t))...),
	} {
		t.Run(name, func(t *testing.T) { l.ranked(p, config.Train).same([]int{2, 3}) })
	}
}

// judgeServer is an OpenAI-compatible server that scores messages.
type judgeServer struct {
	*httptest.Server
	refuses string // it refuses the key for messages with this text

	mu            sync.Mutex
	asked         map[string]int // requests by message
	running, most int            // requests at a time
	meet          int            // requests that the first ones wait for
	met           chan bool      // closed once they are there
}

func newJudgeServer(t *testing.T) *judgeServer {
	s := &judgeServer{asked: map[string]int{}, met: make(chan bool)}
	close(s.met)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP gives a message a score that looks random. It cannot answer some messages.
func (s *judgeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Content string } `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text := body.Messages[0].Content
	s.mu.Lock()
	s.asked[text]++
	s.running++
	s.most = max(s.most, s.running)
	if s.meet > 0 && s.running == s.meet {
		close(s.met)
		s.meet = 0
	}
	met := s.met
	refuses := s.refuses != "" && strings.Contains(text, s.refuses)
	s.mu.Unlock()
	select {
	case <-met:
		time.Sleep(time.Millisecond)
	case <-time.After(30 * time.Second):
		http.Error(w, "alone", http.StatusUnauthorized)
	}
	h := fnv.New32a()
	h.Write([]byte(text))
	switch n := h.Sum32() % 16; {
	case refuses:
		http.Error(w, "no such key", http.StatusUnauthorized)
	case n == 0:
		http.Error(w, "too hard", http.StatusBadRequest)
	default:
		fmt.Fprintf(w, `{"choices": [{"message": {"content": "{\"score\": %d}"}}]}`, n)
	}
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
}

// forget returns the counts of requests and begins new ones.
func (s *judgeServer) forget() (asked map[string]int, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, most = s.asked, s.most
	s.asked, s.most = map[string]int{}, 0
	return asked, most
}

// expect makes the next requests wait until so many are there.
func (s *judgeServer) expect(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meet, s.met = n, make(chan bool)
}

// judgedRun plans a run on prompts that only a judge judges, by messages from a template.
func (s *judgeServer) judgedRun(l *lab, template string, sets ...string) *plan.Run {
	l.t.Helper()
	dir := l.t.TempDir()
	var rows strings.Builder
	for i := range 12 {
		fmt.Fprintf(&rows, `{"prompt": "Say %d"}`+"\n", i)
	}
	data, file := filepath.Join(dir, "prompts.jsonl"), filepath.Join(dir, "judge.txt")
	for name, text := range map[string]string{data: rows.String(), file: template} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			l.t.Fatal(err)
		}
	}
	all := []string{"task={kind: prompts, prompts: {pass: 9}}", "tokenizer.kind=byte", "sft.steps=0", "train.steps=2",
		"algo.kind=grpo", "eval.final.suites=[]", "data.pass_rate={samples: 3, min: 0, max: 1}", "train={prompts_per_step: 4, prompts_per_update: 2}", fmt.Sprintf("reward={kind: judge, "+
			"max_not_graded: 1, judge: {url: %s/v1, model: toy, template: %s, concurrent: 5}}", s.URL, file)}
	for _, split := range []string{"train", "val", "test"} {
		all = append(all, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	return l.plan(0, append(all, sets...)...)
}

// Ranks share a judge: the run is the same, all of them ask, the server never gets more requests at a time than the
// configuration says, and an equal message once in a step, a validation or a measurement of pass rates.
func TestJudgeOnRanks(t *testing.T) {
	l, s := newLab(t), newJudgeServer(t)
	for name, x := range map[string]rankedRun{
		"validation": l.ranked(s.judgedRun(l, "Rate {response} for {prompt}"), config.Train),
		"training":   l.ranked(s.judgedRun(l, "Rate {response} for {prompt}", "rollout.staleness=1", "eval.online.every_steps=0"), config.Train),
		"pass rates": l.ranked(s.judgedRun(l, "Rate {response} for {prompt}"), config.PassRate),
	} {
		t.Run(name, func(t *testing.T) {
			x.same([]int{3})
			s.forget()
			for _, concurrent := range []int{1, 3} {
				s.expect(concurrent)
				if _, errs := x.on(3, fmt.Sprint("reward.judge.concurrent=", concurrent)); errors.Join(errs...) != nil {
					t.Error(errs)
				}
				if _, most := s.forget(); most != concurrent {
					t.Errorf("%d requests at a time, want %d", most, concurrent)
				}
			}
		})
	}
	ahead := l.ranked(s.judgedRun(l, "Rate {response} for {prompt}", "rollout.staleness=1"), config.Train)
	ahead.same([]int{3}, "compute.rollout_ranks=1", "reward.judge.concurrent=2")
	if _, most := s.forget(); most > 5 { // of one rank before
		t.Errorf("%d requests at a time", most)
	}
	s.forget()
	if _, errs := ahead.on(3, "compute.rollout_ranks=2", "reward.judge.concurrent=2"); errors.Join(errs...) != nil {
		t.Error(errs)
	}
	if _, most := s.forget(); most > 2 { // a sampler's, and the first rank's for validations
		t.Errorf("%d requests at a time", most)
	}
	x := l.ranked(s.judgedRun(l, "How long is {prompt}?"), config.Train)
	var want map[string]int
	for _, size := range []int{1, 3} {
		s.forget()
		if _, errs := x.on(size); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		got, _ := s.forget()
		if size == 1 {
			want = got
		}
		if len(got) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d ranks ask %v, want %v", size, got, want)
		}
	}
}

// A judge that refuses what one rank asks ends the run on all ranks with that rank's error.
func TestJudgeRefusesOneRank(t *testing.T) {
	l, s := newLab(t), newJudgeServer(t)
	for _, tt := range []struct {
		kind config.Stage
		text string // of the message that is refused
		sets []string
	}{
		{config.Train, "Say 3", []string{"eval.online.every_steps=0"}},
		{config.Train, "Say 11", []string{"data.train.size=8", "eval.online.problems=12"}}, // a validation
		{config.PassRate, "Say 11", nil},
	} {
		s.refuses = ""
		x := l.ranked(s.judgedRun(l, "How long is {prompt}?", tt.sets...), tt.kind)
		s.mu.Lock()
		s.refuses = tt.text
		s.mu.Unlock()
		_, errs := x.on(3)
		own := 0
		for r, err := range errs {
			var coded interface {
				ExitCode() int
				Hint() string
			}
			if err == nil || !strings.Contains(err.Error(), "judge: "+s.URL+"/v1 answered 401 Unauthorized: no such key") ||
				!errors.As(err, &coded) || coded.ExitCode() != 8 || !strings.Contains(coded.Hint(), "check reward.judge.url") {
				t.Errorf("%s, %s: rank %d: %v", tt.kind, tt.text, r, err)
				continue
			}
			if !strings.Contains(err.Error(), "rank ") {
				own++
			}
		}
		if own != 1 {
			t.Errorf("%s, %s: %d ranks have an error of their own: %v", tt.kind, tt.text, own, errs)
		}
	}
}
