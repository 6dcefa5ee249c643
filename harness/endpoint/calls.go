package endpoint

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"

	"exp/harness/openai"
	"exp/harness/prompt"
	"exp/train/generate"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// ToolFormats returns the names that Options.ToolFormat may have.
func ToolFormats() []string { return toolcall.Syntaxes() }

// ToolFormat returns the name of the format in which the chat template writes calls of tools; empty if it writes none,
// or in a format that ToolFormats lacks.
func (x *Model) ToolFormat() string {
	s, _ := toolcall.SyntaxOf(x.prompts.ToolTemplate())
	return s.Name
}

// ShowsTools reports whether the chat template shows the tools of a request to the model.
func (x *Model) ShowsTools() bool { return x.prompts.ShowsTools() }

// inChannels reports whether the chat template writes answers in channels, where thoughts have one of their own.
func (x *Model) inChannels() bool {
	s, _ := toolcall.SyntaxOf(x.prompts.ToolTemplate())
	return s.Channels
}

// checkTools returns an error for a request with tools whose calls could not be read.
func (s *Server) checkTools(r *openai.Request) error {
	switch {
	case len(r.Tools) == 0, !s.x.Chats(), s.o.ToolFormat != "":
		return nil
	case s.calls.Name != "" && s.shown:
		return nil
	case s.calls.Name != "":
		return openai.Bad("tools", "tools are not supported for this model: its chat template does not show them to "+
			"the model; with exp endpoint --tool-format %s your messages may describe them", s.calls.Name)
	}
	return openai.Bad("tools", "tools are not supported for this model: its chat template writes no calls of tools, "+
		"or in a format that is not known; exp endpoint --tool-format names one: %s",
		strings.Join(ToolFormats(), ", "))
}

// caller reads the calls in the answers to a chat with tools, and the channels of answers that have them.
type caller struct {
	calls    toolcall.Syntax
	tools    json.RawMessage
	one      bool
	thinking bool // the prompt opens the thoughts of an answer
	chat     [sha256.Size]byte
}

// callerOf returns what reads the answers to a request, and lets its sampling spell the tokens that mark calls; nil if
// they call nothing.
func (s *Server) callerOf(r *openai.Request, asks []*generate.Ask) (*caller, error) {
	if len(r.Tools) == 0 && !(r.Chat && s.calls.Channels) {
		return nil, nil
	}
	b, err := json.Marshal(r.Messages)
	if err != nil {
		return nil, err
	}
	spelled := prompt.Spelled(s.x.tok, s.calls.Marks)
	for _, a := range asks {
		a.Spelled = spelled
	}
	return &caller{calls: s.calls, tools: r.Tools, one: r.OneCall, thinking: s.opensThoughts(r),
		chat: sha256.Sum256(b)}, nil
}

// reader returns what reads one answer; nil if it calls nothing.
func (c *caller) reader() *toolcall.Reader {
	if c == nil {
		return nil
	}
	return c.calls.Reader(toolcall.ReaderOptions{Tools: c.tools, Thinking: c.thinking, One: c.one,
		None: len(c.tools) == 0})
}

// id returns the id of call k of completion i: 9 letters and digits, as Mistral's chat templates want. It depends on
// the chat so far, so that the next request, which repeats it, has the same prompt whenever the same is asked, and no
// other call of the chat has it.
func (c *caller) id(i, k int) string {
	h := sha256.Sum256(fmt.Appendf(c.chat[:], "/%d/%d", i, k))
	return base32.StdEncoding.EncodeToString(h[:])[:9]
}

// message returns the whole message of completion i, and why it ends.
func (a *answer) message(i int, text string, finish rollout.Finish) (m map[string]any, why string) {
	var calls []toolcall.Call
	if r := a.caller.reader(); r != nil {
		text, calls = r.Read(text, true)
	}
	return openai.Assistant(text, calls, func(k int) string { return a.caller.id(i, k) }), finishOf(finish, len(calls))
}

// finishOf returns why an answer with some calls ends.
func finishOf(f rollout.Finish, calls int) string {
	if f == rollout.FinishStop && calls > 0 {
		return "tool_calls"
	}
	return f.String()
}

// deltas returns what a stream of completion i says next.
func (a *answer) deltas(i int, text string, calls []toolcall.Call) (list []map[string]any) {
	if text != "" {
		list = append(list, map[string]any{"content": text})
	}
	s := &a.sent[i]
	for _, c := range calls {
		call := openai.Called(c, a.caller.id(i, s.calls))
		call["index"] = s.calls
		s.calls++
		list = append(list, map[string]any{"tool_calls": []any{call}})
	}
	return list
}
