package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/endpoint"
	"exp/harness/replan"
)

// slashCommand is a command within a conversation.
type slashCommand struct {
	name, args, help string
	do               func(s *chatSession, arg string) error
}

// slashCommands lists them in the order of /help.
func slashCommands() []slashCommand {
	return []slashCommand{
		{"reset", "", "forget the conversation", func(s *chatSession, _ string) error {
			s.talk.Reset()
			s.images = nil
			return nil
		}},
		{"undo", "", "take the last question back", (*chatSession).undo},
		{"retry", "", "answer the last question again, with another seed", (*chatSession).retry},
		{"image", "[FILE…]", "show images with the next question; without FILE, none", (*chatSession).addImages},
		{"video", "FOLDER", "show the video of a folder of frames, or a GIF animation, with the next question",
			(*chatSession).addVideos},
		{"system", "[TEXT]", "set the system message, or take it away", (*chatSession).setSystem},
		{"seed", "[N]", "draw every answer with seed N; without N, each with a random one", (*chatSession).setSeed},
		{"temperature", "T", "sample at temperature T, 0 for greedy",
			setNumber(func(o *endpoint.Sampling, v float64) { o.Temperature = v })},
		{"top-p", "P", "sample from the likeliest tokens of total probability P",
			setNumber(func(o *endpoint.Sampling, v float64) { o.TopP = v })},
		{"top-k", "K", "sample from the K likeliest tokens, 0 for all",
			setWhole(func(o *endpoint.Sampling, v int) { o.TopK = v })},
		{"min-p", "P", "sample from tokens at least P times as likely as the likeliest",
			setNumber(func(o *endpoint.Sampling, v float64) { o.MinP = v })},
		{"repetition-penalty", "X", "divide the positive logits of tokens that were there before by X, 1 is off",
			setNumber(func(o *endpoint.Sampling, v float64) { o.Penalties.Repetition = v })},
		{"presence-penalty", "X", "lower the logits of tokens that the answer has by X",
			setNumber(func(o *endpoint.Sampling, v float64) { o.Penalties.Presence = v })},
		{"frequency-penalty", "X", "lower a token's logit by X each time that the answer has it",
			setNumber(func(o *endpoint.Sampling, v float64) { o.Penalties.Frequency = v })},
		{"min-tokens", "N", "at least N tokens in an answer",
			setWhole(func(o *endpoint.Sampling, v int) { o.Least = v })},
		{"max-tokens", "N", "at most N tokens in an answer, 0 for as many as fit",
			setWhole(func(o *endpoint.Sampling, v int) { o.New = v })},
		{"logprobs", "", "show the tokens of the last answer, with the likeliest others", (*chatSession).logprobs},
		{"problem", "[N]", "ask problem N of the run's test set, or the next one, and grade the answer",
			(*chatSession).askProblem},
		{"help", "", "list the commands", (*chatSession).help},
		{"quit", "", "end", func(*chatSession, string) error { return errChatEnds }},
	}
}

// chatCommandList names the commands.
func chatCommandList() string {
	var list []string
	for _, x := range slashCommands() {
		list = append(list, strings.TrimSpace("/"+x.name+" "+x.args))
	}
	return strings.Join(list, ", ")
}

// command executes the command in a line.
func (s *chatSession) command(line string) error {
	name, arg, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	arg = strings.TrimSpace(arg)
	var names []string
	for _, x := range slashCommands() {
		if x.name == name {
			if x.args == "" && arg != "" {
				return cli.Usagef("/%s takes nothing after it", name)
			}
			return x.do(s, arg)
		}
		names = append(names, x.name)
	}
	f := cli.Usagef("unknown command /%s", name)
	f.Help = "/help lists them; a question that begins with / is written with //"
	if near := spelling.Nearest(name, names); near != "" {
		f.Help = "did you mean /" + near + "? " + f.Help
	}
	return f
}

func (s *chatSession) help(string) error {
	return s.page(func(p *cli.Page) error {
		var facts []cli.Fact
		for _, x := range slashCommands() {
			facts = append(facts, cli.Fact{Name: strings.TrimSpace("/" + x.name + " " + x.args), Text: x.help})
		}
		p.Facts(facts...)
		p.Prose(p.ProseWidth(), `A line that ends with \ goes on in the next; """ begins and ends a text of many `+
			`lines. Ctrl-C stops an answer; a second one, or Ctrl-D, ends.`)
		return nil
	})
}

// page prints for people.
func (s *chatSession) page(write func(p *cli.Page) error) error {
	p := s.Out.NewPage(s.Out.W)
	return errors.Join(write(p), p.Close())
}

// noQuestion returns the error of a command that has nothing to work on.
func noQuestion() error { return cli.Usagef("nothing was asked yet") }

func (s *chatSession) undo(string) error {
	if !s.talk.Undo() {
		return noQuestion()
	}
	return nil
}

func (s *chatSession) retry(string) error {
	if _, asked := s.talk.Last(); !asked {
		return noQuestion()
	}
	if s.talk.Sampling.Temperature == 0 {
		s.Note("at temperature 0 every answer is the same")
	}
	if s.talk.OnProblem() {
		return s.graded(s.talk.Again)
	}
	_, err := s.answer(s.talk.Again)
	return err
}

func (s *chatSession) setSystem(text string) error {
	if !s.model.Chats() {
		return cli.Usagef("%s has no chat template, and so no system message", s.model.name)
	}
	s.talk.System = text
	if text == "" {
		s.Note("no system message, unless the template has its own")
	}
	return nil
}

func (s *chatSession) setSeed(arg string) error {
	if arg == "" {
		s.talk.Sampling.Seed = nil
		return nil
	}
	seed, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return cli.Usagef("/seed %s: want a whole number, or nothing for random ones", arg)
	}
	s.talk.Sampling.Seed = &seed
	return nil
}

// setNumber makes a command that sets a number of the sampling.
func setNumber(set func(o *endpoint.Sampling, v float64)) func(s *chatSession, arg string) error {
	return func(s *chatSession, arg string) error {
		v, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			return cli.Usagef("%q is not a number", arg)
		}
		return s.sample(func(o *endpoint.Sampling) { set(o, v) })
	}
}

// setWhole is setNumber for a whole number.
func setWhole(set func(o *endpoint.Sampling, v int)) func(s *chatSession, arg string) error {
	return func(s *chatSession, arg string) error {
		v, err := strconv.Atoi(arg)
		if err != nil {
			return cli.Usagef("%q is not a whole number", arg)
		}
		return s.sample(func(o *endpoint.Sampling) { set(o, v) })
	}
}

// sample changes the sampling, unless the change is out of bounds.
func (s *chatSession) sample(change func(o *endpoint.Sampling)) error {
	o := s.talk.Sampling
	change(&o)
	if err := o.Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	s.talk.Sampling = o
	return nil
}

// logprobs shows the tokens of the last answer.
func (s *chatSession) logprobs(string) error {
	answer, asked := s.talk.Last()
	if !asked {
		return noQuestion()
	}
	var rows [][]any
	sum := 0.0
	for _, t := range answer.Tokens {
		var others []string
		for _, x := range t.Top {
			if x.Text != t.Text {
				others = append(others, fmt.Sprintf("%s %s", tokenText(x.Text), quantity.Fixed(float64(x.LogProb), 2)))
			}
		}
		rows = append(rows, []any{tokenText(t.Text), float64(t.LogProb), strings.Join(others, "  ")})
		sum += float64(t.LogProb)
	}
	return s.page(func(p *cli.Page) error {
		columns := []cli.Column{{Key: "token"}, {Key: "logprob", Digits: 3},
			{Key: "likeliest", Title: "likeliest others", Rank: 1, Min: 16}}
		if err := p.Table(columns, rows); err != nil {
			return err
		}
		p.Line("%s, log-prob %s in all, at temperature 1", quantity.Plural(len(rows), "token"), quantity.Fixed(sum, 2))
		return nil
	})
}

// tokenText quotes a token, so that its spaces and line ends can be seen.
func tokenText(text string) string { return strconv.Quote(text) }

// askProblem asks a problem of the run.
func (s *chatSession) askProblem(arg string) error {
	if s.model.run == nil {
		return cli.Usagef("/problem needs a run: %s is a folder, which has no problems", s.model.name)
	}
	if s.problems == nil {
		if err := s.readProblems(); err != nil {
			return err
		}
	}
	n := s.problem%s.problems.Len() + 1
	if arg != "" {
		var err error
		if n, err = strconv.Atoi(arg); err != nil || n < 1 || n > s.problems.Len() {
			return cli.Usagef("/problem %s: want a number from 1 to %d", arg, s.problems.Len())
		}
	}
	s.problem = n
	q, err := s.talk.Show(s.problems, n-1)
	if err != nil {
		return err
	}
	if err := s.page(func(p *cli.Page) error {
		p.Heading(fmt.Sprintf("%s problem %d of %d: %s", s.problems.Split, n, s.problems.Len(), term.Clean(q.ID)))
		p.Text("  ", q.Prompt)
		return nil
	}); err != nil {
		return err
	}
	return s.graded(func(ctx context.Context, show func(string) error) (endpoint.Answer, error) {
		return s.talk.AskProblem(ctx, s.problems, n-1, show)
	})
}

// readProblems reads the problems of the model's run.
func (s *chatSession) readProblems() error {
	return cli.With(s.OpenStore, func(db *store.DB) error {
		r, err := replan.Config(s.ctx, db, *s.model.run, nil, s.Getenv)
		if err != nil {
			return err
		}
		s.problems, err = endpoint.ReadProblems(s.ctx, db, *s.model.run, r)
		return err
	})
}

// graded shows the answer to a problem that ask brings, the right answer and the grader's verdict.
func (s *chatSession) graded(ask asking) error {
	if whole, err := s.answer(ask); err != nil || !whole {
		return err
	}
	var v endpoint.Verdict
	err := s.untilStopped(func(ctx context.Context) (err error) {
		v, err = s.talk.Grade(ctx, s.problems)
		return err
	})
	if err != nil {
		return err
	}
	q, err := s.talk.Show(s.problems, s.problem-1)
	if err != nil {
		return err
	}
	word := "wrong"
	switch {
	case !v.Graded:
		word = "not graded"
	case v.Correct:
		word = "right"
	}
	return s.page(func(p *cli.Page) error {
		p.Facts(cli.Fact{Name: "gold", Text: q.Gold}, cli.Fact{Name: "answer", Text: v.Answer},
			cli.Fact{Name: "verdict", Text: word}, cli.Fact{Name: "reason", Text: v.Reason},
			cli.Fact{Name: "score", Text: quantity.Fixed(v.Reward, 2)})
		return nil
	})
}
