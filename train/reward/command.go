package reward

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"exp/train/program"
	"exp/train/rollout"
)

// CommandOptions configure a reward program. All must be set.
type CommandOptions struct {
	Argv       []string      // program and arguments; the program is looked up in PATH
	Parts      []string      // components required in every answer
	Verdicts   bool          // read "correct" and "answer" too, for NewAlone
	DataSource string        // for rows whose problem names none
	Workers    int           // processes
	Batch      int           // rows sent to a process at once
	RowLimit   time.Duration // longest silence while rows wait for an answer
	BatchLimit time.Duration // longest time for all rows of a batch
	Retries    int           // retries of a row without an answer
	// Restarts is how often, in one call of Score, processes may end or fall silent before
	// the program counts as broken.
	Restarts int
	// Log receives the program's lines on standard error. It is called only from Score and
	// Close.
	Log func(line string)
}

// Command scores with a program and keeps one process per worker running. The
// program reads one row per line from its standard input,
//
//	{"id": "7", "problem": "…", "prompt": "…", "response": "…", "turns": 1, "gold": "…", "data_source": "…",
//	 "extra": {…}}
//
// and writes one answer per line to its standard output, in any order:
//
//	{"id": "7", "score": 0.5, "components": {"style": 0.1}, "correct": true, "answer": "Oslo"}
//	{"id": "7", "error": "why it has no score"}
//
// Only "id" and "score" are required; "correct" and "answer" are read if CommandOptions.Verdicts.
// It may read ahead, but nothing marks the end of a batch: it must answer the rows it has
// without waiting for more, and flush. "turns" counts the policy's turns, "gold" is the
// problem's answer, "extra" its data. At
// the end its standard input is closed, and the remains of its process group are killed.
//
// A process that ends or falls silent is restarted, and its unanswered rows are asked one
// by one, so that a row that crashes it harms only itself. A malformed line, an unknown id
// or a second answer to a row mean that answers cannot be matched to rows reliably: those
// are *BrokenError.
type Command struct {
	opt       CommandOptions
	processes []*program.Process // by worker; nil before the first row and after a failure
	last      int64              // id of the last row sent
	grace     time.Duration
}

// NewCommand prepares a program; the first row starts it. Close it afterwards.
func NewCommand(o CommandOptions) *Command {
	if len(o.Argv) == 0 || o.Workers < 1 || o.Batch < 1 || o.RowLimit <= 0 || o.BatchLimit <= 0 {
		panic("reward: command without program, workers, batch or limits")
	}
	return &Command{opt: o, processes: make([]*program.Process, o.Workers), grace: closeGrace}
}

// row is a line of the program's input.
type row struct {
	ID         string          `json:"id"`
	Problem    string          `json:"problem"`
	Prompt     string          `json:"prompt"`
	Response   string          `json:"response"`
	Turns      int             `json:"turns"`
	Gold       string          `json:"gold"`
	DataSource string          `json:"data_source"`
	Extra      json.RawMessage `json:"extra"`
}

// rows makes the rows of items; ids are never used twice.
func (c *Command) rows(items []rollout.Item) []row {
	out := make([]row, len(items))
	for i, it := range items {
		c.last++
		p := it.Problem
		out[i] = row{ID: fmt.Sprint(c.last), Problem: p.ID, Prompt: p.Prompt, Response: it.Completion.Text,
			Turns: it.Completion.Turns(), Gold: p.Answer, Extra: p.Data,
			DataSource: p.DataSource(cmp.Or(p.Kind, c.opt.DataSource))}
	}
	return out
}

// Score implements Scorer.
func (c *Command) Score(ctx context.Context, items []rollout.Item) ([]Score, error) {
	s := &scoring{Command: c, rows: c.rows(items), scores: make([]Score, len(items))}
	var todo [][]int
	for lo := 0; lo < len(items); lo += c.opt.Batch {
		var batch []int
		for i := lo; i < min(lo+c.opt.Batch, len(items)); i++ {
			batch = append(batch, i)
		}
		todo = append(todo, batch)
	}
	for try := 0; len(todo) > 0 && try <= c.opt.Retries; try++ {
		err := s.round(ctx, todo)
		c.opt.logTo(s.said)
		s.said = nil
		if err != nil {
			c.kill()
			return nil, err
		}
		c.log()
		slices.Sort(s.failed)
		todo = todo[:0]
		for _, i := range s.failed {
			todo = append(todo, []int{i})
		}
		s.failed = nil
	}
	return s.scores, nil
}

// scoring is one call of Score.
type scoring struct {
	*Command
	rows   []row
	scores []Score

	mu       sync.Mutex
	next     int   // next batch to hand out
	failed   []int // rows without an answer in this round
	restarts int
	said     []string // last lines of ended processes
	err      error
}

// round lets the workers ask for all batches of rows once.
func (s *scoring) round(ctx context.Context, batches [][]int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.next = 0
	var wg sync.WaitGroup
	for k := range min(len(s.processes), len(batches)) {
		wg.Go(func() {
			for {
				s.mu.Lock()
				i := s.next
				s.next++
				stop := s.err != nil || i >= len(batches)
				s.mu.Unlock()
				if stop {
					return
				}
				if err := s.ask(ctx, k, batches[i]); err != nil {
					s.mu.Lock()
					if s.err == nil {
						s.err = err
					}
					s.mu.Unlock()
					cancel() // the other workers' rows are now useless
					return
				}
			}
		})
	}
	wg.Wait()
	return s.err
}

// ask lets worker k score a batch. It marks unanswered rows as failed; an error ends the
// call.
func (s *scoring) ask(ctx context.Context, k int, batch []int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.processes[k] == nil {
		p, err := program.Start(s.opt.Argv)
		if err != nil {
			return s.broken(err, "set reward.command to the program and its arguments")
		}
		s.processes[k] = p
	}
	rows := make([]row, len(batch))
	for j, i := range batch {
		rows[j] = s.rows[i]
	}
	answers, err := exchange(ctx, s.processes[k], rows, s.opt)
	for j, a := range answers {
		if a.ID != "" {
			s.scores[batch[j]] = a.score()
		}
	}
	var failure *failure
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failure):
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for j, a := range answers {
		if a.ID == "" {
			s.scores[batch[j]] = Score{Reason: failure.Error()}
			s.failed = append(s.failed, batch[j])
		}
	}
	s.said = append(s.said, s.processes[k].TakeLog()...)
	s.processes[k] = nil
	if s.restarts++; s.restarts > s.opt.Restarts {
		err := fmt.Errorf("it failed %s in one step; the last failure: %w", program.Times(s.restarts), failure)
		return s.broken(err, "run it by hand on a row to see why; reward.row_limit, reward.batch and reward.restarts "+
			"set its limits")
	}
	return nil
}

func (c *Command) broken(err error, help string) error {
	return &BrokenError{What: "reward command " + c.opt.Argv[0], Err: err, Help: help}
}

// logTo passes lines to the log.
func (o CommandOptions) logTo(lines []string) {
	if o.Log == nil {
		return
	}
	for _, l := range lines {
		o.Log(l)
	}
}

// log passes on the programs' output.
func (c *Command) log() {
	for _, p := range c.processes {
		if p != nil {
			c.opt.logTo(p.TakeLog())
		}
	}
}

// kill kills all processes at once.
func (c *Command) kill() {
	for k, p := range c.processes {
		if p != nil {
			p.Stop(0)
			c.opt.logTo(p.TakeLog())
			c.processes[k] = nil
		}
	}
}

// closeGrace is how long a program may keep running after its input has ended.
const closeGrace = 5 * time.Second

// Close implements Scorer: it ends the programs. It returns an error if a program wrote
// unexpected answers.
func (c *Command) Close() error {
	var errs []error
	for k, p := range c.processes {
		if p == nil {
			continue
		}
		left := p.Stop(c.grace)
		c.opt.logTo(p.TakeLog())
		if l := left; l != nil {
			errs = append(errs, c.broken(fmt.Errorf("line %d of its output is not an answer to any row, or a "+
				"second one: %s", l.Number, program.Excerpt(l.Text)),
				"a row is answered once, by one line"))
		}
		c.processes[k] = nil
	}
	return errors.Join(errs...)
}
