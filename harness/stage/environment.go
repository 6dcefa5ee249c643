package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"exp/eval/interpreter"
	"exp/experiments/ident"
	"exp/harness/agent"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/sandbox"
	"exp/train/form"
	"exp/train/program"
	"exp/train/rl"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// toolFormat returns the format of a run's calls.
func toolFormat(t config.Tools) (toolcall.Format, error) {
	pair := func(list []string) (p [2]string) {
		copy(p[:], list)
		return p
	}
	return toolcall.Named(t.Format, pair(t.Call), pair(t.Answer))
}

// callsByMessage reports whether answers are messages of the chat template.
func callsByMessage(t config.Tools) bool {
	return t.Agent() || t.Used() && (t.Format == toolcall.Hermes || t.Format == toolcall.User)
}

// equip sets the form of completions, and what answers the policy's calls or asks it, nothing for none; end frees it
// when nothing is under way.
func (e *Env) equip(ctx context.Context, p *rollout.Params, prompts *prompt.Prompter) (end func() error, err error) {
	switch f, err := e.form(prompts); {
	case err != nil:
		return nil, err
	case f != nil:
		p.Form = f
	}
	switch t := e.run().Rollout.Tools; {
	case t.Agent():
		a := e.newAgent(prompts)
		p.Agent = a
		return a.Close, nil
	case t.Used():
		p.Environment, end, err = e.newEnvironment(ctx, prompts)
		return end, err
	}
	return func() error { return nil }, nil
}

// form returns the form of completions for the run's tokens; nil: they have none. The error is a config.Errors.
func (e *Env) form(prompts *prompt.Prompter) (*form.Form, error) {
	spec := e.run().Rollout.Form.Spec()
	if spec == nil {
		return nil, nil
	}
	f, err := form.New(*spec, form.NewVocabulary(prompts.Vocabulary()))
	var bad *form.Error
	if errors.As(err, &bad) {
		return nil, config.Errors{e.Config.ErrorAt("rollout.form.kind", config.CodeConflict, bad.Error(),
			"write it in characters that the tokenizer has")}
	}
	return f, err
}

// newAgent makes what plays episodes; nil prompts are enough to try it.
func (e *Env) newAgent(prompts *prompt.Prompter) *agent.Agent {
	c := e.run().Rollout.Tools
	o := agent.Options{Argv: c.Command, DataSource: e.run().Task.Kind, Workers: c.Workers, Each: max(1, c.Episodes),
		Limit: c.Limit, Retries: c.Retries, Log: e.saysOf("agent"), MaxTurns: c.MaxTurns,
		MaxPrompt: e.run().Data.MaxPromptTokens, Conversations: agent.Conversations(c.Conversations),
		MaxConversations: c.MaxConversations}
	advantage, _ := rl.EstimatorNamed(e.run().Algo.Advantage)
	o.States = advantage.Turns
	o.Seed = func(root uint64, label string) uint64 { return ident.Seed(int64(root), label) }
	if prompts != nil {
		vocab := prompts.Vocabulary()
		o.Calls, o.Spelled = callsIn(prompts)
		o.Forms = form.NewCache(vocab)
		o.Images = e.askedImages()
		o.Ends, o.Piece = vocab.EndIDs(), vocab.Piece
		o.Chats, o.Chat, o.Reply, o.Text = prompts.Chats(), prompts.AskedChat, prompts.Answered, prompts.AskedText
		o.Inserted = func(text string) ([]int32, error) { return prompts.Inserted("", text, "") }
	}
	return agent.New(o)
}

// callsIn returns the syntax of calls in the chat template, else Hermes's, and its marks that are tokens without a
// text.
func callsIn(prompts *prompt.Prompter) (s toolcall.Syntax, spelled map[int32]string) {
	s, ok := toolcall.SyntaxOf(prompts.ToolTemplate())
	if !ok {
		s = must(toolcall.SyntaxNamed(toolcall.Hermes))
	}
	return s, prompt.Spelled(prompts.Vocabulary(), s.Marks)
}

// newEnvironment makes what answers the policy's calls; end frees it when no call is under way.
func (e *Env) newEnvironment(ctx context.Context, prompts *prompt.Prompter) (env rollout.Environment, end func() error,
	err error) {
	c := e.run().Rollout.Tools
	o := toolcall.Options{MaxTurns: c.MaxTurns, MaxCalls: max(1, c.MaxCalls), MaxOutput: c.MaxOutput,
		Side: toolcall.Side(c.Keep), Chat: prompts.Reply, Text: prompts.Inserted}
	if o.Format, err = toolFormat(c); err != nil {
		return nil, nil, err
	}
	switch c.Kind {
	case "python":
		pool, err := sandbox.Open(ctx, SandboxConfig(e.run()))
		if err != nil {
			return nil, nil, err
		}
		o.Tool, end = &interpreter.Python{Run: pool, Limits: toolLimits(c)}, pool.Close
	case "command":
		t := e.toolCommand()
		o.Tool, end = t, t.Close
	default:
		return nil, nil, fmt.Errorf("rollout.tools.kind: unknown kind %q", c.Kind)
	}
	return toolcall.New(o), end, nil
}

// toolCommand returns the program that answers calls.
func (e *Env) toolCommand() *toolcall.Command {
	c := e.run().Rollout.Tools
	return toolcall.NewCommand(toolcall.CommandOptions{Argv: c.Command, DataSource: e.run().Task.Kind,
		Workers: c.Workers, Limit: c.Limit, Retries: c.Retries, Log: e.saysOf("tool")})
}

// saysOf returns what warns of a program's standard error, where a text may have several lines. It shows the same text
// sameLines times.
func (e *Env) saysOf(kind string) func(text string) {
	name := program.Excerpt([]byte(strings.Join(e.run().Rollout.Tools.Command, " ")))
	return (&stderrLines{show: func(text string) {
		if strings.Contains(text, "\n") {
			text = "\n" + text
		} else {
			text = " " + text
		}
		e.warn("%s %s:%s", kind, name, text)
	}}).add
}

// TryTool starts the program that answers calls or plays episodes, if there is one. A program that ends at once ends
// the run before any work.
func TryTool(e *Env) error {
	switch e.run().Rollout.Tools.Kind {
	case "command":
		return e.toolCommand().Try(time.Second)
	case "agent":
		return e.newAgent(nil).Try(time.Second)
	}
	return nil
}

// toolLimits returns the limits of a program. It may wait as long as it may compute, and somewhat more on a busy
// machine.
func toolLimits(c config.Tools) sandbox.Limits {
	cpu := c.CPULimit.Milliseconds()
	return sandbox.Limits{CPUMS: cpu, WallMS: 2*cpu + 5000, MemoryMB: c.MemLimit >> 20, StdoutKB: 64, StderrKB: 64}
}

// toolDigests returns the digests of what answers calls: a program and its files, or the interpreter. It tells bad
// the problems of each key, among them formats that the chat template cannot write.
func toolDigests(c *config.Run, p *prompt.Prompter,
	bad func(key, code, message, help string)) map[string]ident.Digest {
	t := c.Rollout.Tools
	x, add := digestsByUse("tool/", bad)
	switch t.Kind {
	case "command", "agent":
		add("rollout.tools.command", "command", func() (ident.Digest, error) { return ident.Program(t.Command) })
		if len(t.Files) > 0 {
			add("rollout.tools.files", "files", func() (ident.Digest, error) { return ident.Paths(t.Files) })
		}
	case "python":
		add("rollout.tools.kind", "python", func() (ident.Digest, error) {
			v, err := sandbox.PythonVersion(context.Background())
			return ident.Sum([]byte(v)), err
		})
	}
	if p != nil && t.Used() && !t.Agent() {
		checkCalls(p, t, bad)
	}
	if p != nil && callsByMessage(t) && (p.Chats() || !t.Agent()) {
		if err := p.CheckReply(t); err != nil {
			key, what := "rollout.tools.format", "rollout.tools.format is "+t.Format
			help := "data.chat: a template that writes tool messages, or rollout.tools.format: fence or tags"
			if t.Agent() {
				key, what, help = "rollout.tools.kind", "rollout.tools.kind is agent", "data.chat: a template that "+
					"writes conversations, or none, and texts that the policy continues"
			}
			bad(key, config.CodeConflict, fmt.Sprintf("%s: %v", what, err), help)
		}
	}
	return x
}

// checkCalls tells bad of texts of calls that completions never have: tokens without text.
func checkCalls(p *prompt.Prompter, t config.Tools, bad func(key, code, message, help string)) {
	f, err := toolFormat(t)
	if err != nil {
		bad("rollout.tools.format", config.CodeConflict, err.Error(), "")
		return
	}
	for _, text := range []string{f.Open, f.Close} {
		if id, ok := p.Tokenizer.TokenID(text); ok && text != "" && len(p.Tokenizer.Piece(id)) == 0 {
			key := "rollout.tools.format"
			if t.Format == toolcall.Tags {
				key = "rollout.tools.call"
			}
			bad(key, config.CodeConflict, fmt.Sprintf("%s is a special token of this tokenizer, which a "+
				"completion's text leaves out: no call would be found", text),
				"rollout.tools.format: tags, with rollout.tools.call that are text")
		}
	}
}

// ofPolicy returns what a grader of answers reads of a completion with tools: the policy's last turn where turns are
// messages, else all that it wrote.
func ofPolicy(t config.Tools, c *rollout.Completion) *rollout.Completion {
	if callsByMessage(t) {
		return c.LastTurn()
	}
	return c.Own()
}

// GradedText returns the text of a completion that its task's grader reads; nil where that is the whole text.
func GradedText(c *config.Run, x *rollout.Completion) *string {
	if x.Turns() == 1 {
		return nil
	}
	return &ofPolicy(c.Rollout.Tools, x).Text
}

// writtenGrader grades what the policy wrote.
type writtenGrader struct {
	rollout.Grader
	tools config.Tools
}

// Grade implements rollout.Grader.
func (g writtenGrader) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return g.Grader.Grade(ctx, p, ofPolicy(g.tools, c))
}

// writtenBatchGrader is writtenGrader for a grader that judges many completions at once.
type writtenBatchGrader struct {
	writtenGrader
	batch rollout.BatchGrader
}

// GradeAll implements rollout.BatchGrader.
func (g writtenBatchGrader) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	list := make([]rollout.Item, len(items))
	for i, it := range items {
		it.Completion = ofPolicy(g.tools, it.Completion)
		list[i] = it
	}
	return g.batch.GradeAll(ctx, list)
}

// gradesWritten wraps a task's grader where completions have tools, or recorded ones may.
func (e *Env) gradesWritten(g rollout.Grader) rollout.Grader {
	t := e.run().Rollout.Tools
	if !t.Used() && e.run().Rollout.Source != recordedSource {
		return g
	}
	w := writtenGrader{g, t}
	if batch, ok := g.(rollout.BatchGrader); ok {
		return writtenBatchGrader{w, batch}
	}
	return w
}
