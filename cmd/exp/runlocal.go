package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/cluster"
	"exp/harness/config"
	"exp/harness/plan"
)

// localStudy is one exp run whose jobs are children of this process.
type localStudy struct {
	*app
	c       *cli.Context
	db      *store.DB
	jobs    []cluster.Job
	files   []string   // of each plan: the configuration file
	sets    [][]string // of each plan: the settings of its arm
	goal    *objective // of a search; nil: none
	display term.Progress
	begun   []time.Time
	ran     cluster.Results
	done    int
}

// runLocal executes the runs as processes, several at a time.
func (a *app) runLocal(c *cli.Context, configs []*config.Resolved, seeds []int64,
	goal *objective) error {
	if err := a.requireAll(c, configs); err != nil {
		return err
	}
	db, err := a.OpenStoreToWrite()
	if err != nil {
		return err
	}
	defer db.Close()
	s := &localStudy{app: a, c: c, db: db, goal: goal}
	list := plan.WantedOf(configs, seeds)
	plans, err := cluster.Plan(c.Context, db, list, cluster.ClassHere(a.Getenv))
	if err != nil {
		return err
	}
	if err := s.arms(configs, list); err != nil {
		return err
	}
	if c.Bool("no-cache") { // every run executes everything
		s.jobs = cluster.Alone(plans)
	} else if s.jobs, err = cluster.List(c.Context, db, plans); err != nil {
		return err
	}
	s.ran = make(cluster.Results, len(plans))
	return s.executeHere()
}

// arms notes where the configuration of each run comes from: loadConfigs makes every arm
// of a grid or a search for each file.
func (s *localStudy) arms(configs []*config.Resolved, list []plan.Wanted) error {
	arms, _, err := armsOf(s.c)
	if err != nil {
		return err
	}
	for _, j := range list {
		i := slices.Index(configs, j.Config)
		arm := arms[i%len(arms)]
		sets := arm.Sets
		if arm.Label != "" {
			sets = append(slices.Clone(sets), "name="+j.Config.Run.Name)
		}
		s.files = append(s.files, s.c.Args().Get(i/len(arms)))
		s.sets = append(s.sets, sets)
	}
	return nil
}

// executeHere divides the processors of this machine among processes.
func (s *localStudy) executeHere() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	n := 2
	if s.c.IsSet("jobs") {
		n = s.c.Int("jobs")
	}
	shares := cluster.Divide(os.DirFS("/sys"), cluster.Allowed(), min(n, len(s.jobs)))
	each := "with " + quantity.Plural(shares[0].Threads, "thread") + " each"
	ends := s.execute(len(shares), each, func(i, slot int) cluster.Executor {
		j := &s.jobs[i]
		args := processArgs(s.c, s.db, j, s.files[j.Index], s.sets[j.Index])
		threads := shares[slot].Threads
		if s.c.IsSet("threads") {
			threads = s.c.Int("threads")
		}
		return &cluster.Process{Program: program, Args: append(args, "--threads", strconv.Itoa(threads)),
			CPUs: shares[slot].CPUs, Heard: s.hears(i)}
	})
	return s.finish(ends)
}

// execute executes the jobs in slots and shows their progress. each says for people what a
// slot is.
func (s *localStudy) execute(slots int, each string, executor func(i, slot int) cluster.Executor) []cluster.End {
	s.begun = make([]time.Time, len(s.jobs))
	s.display = s.Progress()
	s.Note("%s in %s, %d at once %s", quantity.Plural(len(s.ran), "run"), quantity.Plural(len(s.jobs), "job"),
		min(slots, len(s.jobs)), each)
	s.display.StageStart(term.Stage{Kind: "study", Total: len(s.jobs), Unit: "job"})
	kill, killAll := context.WithCancel(context.Background())
	defer killAll()
	s.OnSecondSignal(func() string {
		killAll()
		return "the runs keep their finished stages and checkpoints" + s.again()
	})
	defer s.OnSecondSignal(nil)
	said := make(chan struct{})
	unasked := context.AfterFunc(s.c.Context, func() {
		defer close(said)
		s.display.Note("stopping all runs after their current steps and saving them; Ctrl-C again stops at once")
	})
	local := cluster.Local{Jobs: s.jobs, Slots: slots, Started: s.started, Ended: s.ended, Moved: s.moved,
		Failed: func(e cluster.End) bool {
			return e.Code != int(cli.ExitCondition) // a run that its condition stopped did what was asked
		},
		KeepGoing: s.c.Bool("keep-going"), Executor: executor}
	start := time.Now()
	ends := local.Run(s.c.Context, kill)
	if !unasked() {
		<-said // runs may stop faster than that
	}
	s.display.StageDone(term.Result{Status: outcomeOf(ends), Wall: time.Since(start)})
	s.CloseProgress()
	return ends
}

// outcomeOf sums up how all processes ended.
func outcomeOf(ends []cluster.End) term.Status {
	status := term.Done
	for _, e := range ends {
		switch {
		case e.Code == int(cli.ExitInterrupted), e.Code == int(cli.ExitCondition),
			errors.Is(e.Err, cluster.ErrNotStarted):
			if status == term.Done {
				status = term.Stopped
			}
		case e.Code != 0:
			status = term.Failed
		}
	}
	return status
}

func (s *localStudy) started(i int) {
	s.begun[i] = time.Now()
	s.display.Note(s.jobs[i].Name() + "  starts")
}

// moved tells of a job whose host is lost.
func (s *localStudy) moved(i int, e cluster.End) {
	s.display.Warn(fmt.Sprintf("%s: %v; another host executes it, and this one gets no more", s.jobs[i].Name(), e.Err))
}

func (s *localStudy) ended(i int, e cluster.End) {
	name, wall := s.jobs[i].Name(), quantity.Duration(time.Since(s.begun[i]))
	switch {
	case e.Code == 0:
		s.display.Note(fmt.Sprintf("%s  done in %s", name, wall))
	case e.Code == int(cli.ExitInterrupted):
		s.display.Note(fmt.Sprintf("%s  stopped after %s", name, wall))
	case e.Signal != 0:
		s.display.Warn(fmt.Sprintf("%s: its process was ended by signal %d (%v) after %s", name, e.Signal, e.Signal,
			wall))
	case e.Code == int(cli.ExitCondition):
		s.display.Note(fmt.Sprintf("%s  stopped by its condition after %s", name, wall))
	default:
		s.display.Warn(fmt.Sprintf("%s: exit code %d after %s", name, e.Code, wall))
	}
	if e.Code == 0 {
		s.done++
		s.display.StageProgress(term.Step{Step: s.done})
	}
}

// stepPause is the least time between two lines about the steps of one run; shownSeconds
// is the least time of a stage that gets a line.
const (
	stepPause    = 10 * time.Second
	shownSeconds = 1
)

// hears returns a function that shows the progress of a process: a line for each stage that
// took a while, and one for its steps now and then.
func (s *localStudy) hears(i int) func(cluster.Event) {
	j := &s.jobs[i]
	last := time.Now()
	return func(e cluster.Event) {
		say := func(format string, args ...any) {
			s.display.Note(j.Name() + "  " + fmt.Sprintf(format, args...))
		}
		switch e.Event {
		case "step":
			if e.Of > 0 && time.Since(last) >= stepPause {
				last = time.Now()
				say("%s  %d/%d  %s", e.StageName(), e.Step, e.Of, metricsText(e.Metrics))
			}
		case "stage_end":
			if e.Status != string(term.Cached) && e.WallS >= shownSeconds {
				say("%s  %s in %s", e.StageName(), e.Status, quantity.Duration(quantity.Seconds(e.WallS)))
			}
		case "run_end":
			s.ran.Add(j.Index, &e)
		case "warning":
			s.display.Warn(j.Name() + ": " + e.Text)
		}
	}
}

// metricsText formats {"reward":0.5,"entropy":"NaN"}, in its order, for people.
func metricsText(object []byte) string {
	d := json.NewDecoder(bytes.NewReader(object))
	var words []string // names and values by turns
	for {
		switch t, err := d.Token(); t := t.(type) {
		case string:
			words = append(words, t)
		case float64:
			words = append(words, quantity.Short(t))
		case nil:
			if err == nil {
				continue
			}
			var parts []string
			for pair := range slices.Chunk(words, 2) {
				parts = append(parts, strings.Join(pair, " "))
			}
			return strings.Join(parts, "  ")
		}
	}
}

// finish prints the results of all runs that there are, and returns the worst error.
func (s *localStudy) finish(ends []cluster.End) error {
	ctx := context.WithoutCancel(s.c.Context)
	results, err := s.ran.InStore(ctx, s.db, s.jobs, ends)
	if err != nil {
		return err
	}
	show := s.printResults
	if s.goal != nil {
		show = s.goal.print
	}
	if err := show(ctx, s.db, results); err != nil {
		return err
	}
	if err := s.worst(ends); err != nil || s.goal != nil {
		return err
	}
	return s.suggestNext(ctx, s.db, results)
}

// worst returns the error of the process that ended worst, nil if all succeeded.
func (s *localStudy) worst(ends []cluster.End) error {
	// From worst to best. Damage and divergence outrank failures, and those what a person
	// can mend at once.
	order := []cli.ExitCode{cli.ExitIntegrity, cli.ExitDivergence, cli.ExitFailure, cli.ExitEvaluation, cli.ExitRank,
		cli.ExitResource, cli.ExitNotComparable, cli.ExitNotFound, cli.ExitUsage, cli.ExitCondition}
	at, rank, left := -1, len(order), 0
	for i, e := range ends {
		if e.Code == 0 {
			continue
		}
		left++
		code := cli.ExitCode(e.Code)
		if errors.Is(e.Err, cluster.ErrNotStarted) || code == cli.ExitInterrupted && s.c.Context.Err() != nil {
			continue
		}
		r := slices.Index(order, code)
		if r < 0 {
			r = slices.Index(order, cli.ExitFailure)
		}
		if r < rank {
			at, rank = i, r
		}
	}
	switch {
	case left == 0:
		return nil
	case at < 0:
		return cli.Stoppedf(s.c.Context, "%d of %s did not end; saved%s", left,
			quantity.Plural(len(s.jobs), "job"), s.again())
	}
	e := ends[at]
	why := strings.TrimPrefix(e.Said, "error: ")
	switch {
	case e.Err != nil:
		why = e.Err.Error()
	case e.Signal != 0:
		why = fmt.Sprintf("its process was ended by signal %d (%v)", e.Signal, e.Signal)
	}
	f := cli.Failf(order[rank], "%s: %s", s.jobs[at].Name(), why)
	return f.Advise(strings.TrimSpace(s.again()))
}
