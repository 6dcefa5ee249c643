package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"exp/eval/interpreter"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/chat"
	"exp/train/rollout"
	"exp/train/tokenizer"
	"exp/train/toolcall"
)

// mostTools bounds a list of tools, in bytes.
const mostTools = 4 << 20

// readTools returns data.tools as compact JSON with its keys in the original order; for none the definition of
// Python where calls name tools, else nil.
func readTools(c *config.Run) (json.RawMessage, error) {
	text := c.Data.Tools
	if text == "" || text == config.None {
		if t := c.Rollout.Tools; t.Kind == "python" && t.Format == toolcall.Hermes {
			return json.RawMessage(interpreter.Definition), nil
		}
		return nil, nil
	}
	raw, where := []byte(text), ""
	if !strings.HasPrefix(strings.TrimSpace(text), "[") {
		f, err := os.Open(text)
		if err != nil {
			return nil, err
		}
		defer f.Close() // only read: an error on closing loses nothing
		if raw, err = io.ReadAll(io.LimitReader(f, mostTools+1)); err != nil {
			return nil, err
		}
		where = text + ": "
	}
	if len(raw) > mostTools {
		return nil, fmt.Errorf("%sover %d MiB of tools", where, mostTools>>20)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%snot a JSON list of tools: %w", where, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%san empty list of tools; write none for no tools", where)
	}
	for i, tool := range list {
		if t := bytes.TrimSpace(tool); t[0] != '{' {
			return nil, fmt.Errorf("%stool %d is %s; a definition is an object, such as {type: function, function: "+
				"{name: …, description: …, parameters: …}}", where, i+1, shortJSON(t))
		}
	}
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}

func shortJSON(raw []byte) string {
	const most = 40
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}

// ToolsError is returned by New for data.tools.
type ToolsError struct{ Err error }

func (e *ToolsError) Error() string { return "tools: " + e.Err.Error() }
func (e *ToolsError) Unwrap() error { return e.Err }

// toolsOf returns the tools of a problem: its own, or the run's; nil for none.
func (t *template) toolsOf(p *rollout.Problem) json.RawMessage {
	if len(p.Tools) > 0 {
		return p.Tools
	}
	return t.tools
}

// useTools notes data.tools, and the model's template for chats with tools if it has a separate
// one.
func (t *template) useTools(c *config.Run, files map[string][]byte) (err error) {
	if t.tools, err = readTools(c); err != nil {
		return &ToolsError{err}
	}
	if t.own {
		return nil
	}
	source, from, err := chat.SelectTemplate(files, "", true)
	if err != nil || source == t.source {
		return nil
	}
	if t.withTools, err = chat.Parse(source); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	t.toolSource = source
	return nil
}

// ToolTemplate returns the source of the template that renders chats with tools; empty if prompts are plain text.
func (p *Prompter) ToolTemplate() string {
	if p.template == nil {
		return ""
	}
	return p.template.toolSource
}

// Spelled returns the texts in a list that are tokens without a piece, by token: completions leave them out.
func Spelled(tok tokenizer.Tokenizer, texts []string) map[int32]string {
	out := map[int32]string{}
	for _, text := range texts {
		if id, ok := tok.TokenID(text); ok && len(tok.Piece(id)) == 0 {
			out[id] = text
		}
	}
	return out
}

// with returns the template for chats with tools, or without.
func (t *template) with(tools json.RawMessage) *chat.Template {
	if len(tools) > 0 && t.withTools != nil {
		return t.withTools
	}
	return t.Template
}

// ignores reports whether a prompt is the same without its tools.
func (t *template) ignores(p *rollout.Problem) bool {
	tools := t.toolsOf(p)
	if len(tools) == 0 {
		return false
	}
	with, err := t.prompt(t.messagesOf(p), tools)
	if err != nil {
		return false // reported when the prompt is encoded
	}
	without, err := t.prompt(t.messagesOf(p), nil)
	return err == nil && with == without
}

// ToolsDigest returns the digest of data.tools; zero for none, and for plain text prompts.
func (p *Prompter) ToolsDigest() (ident.Digest, error) {
	if p.template == nil || len(p.template.tools) == 0 {
		return ident.Digest{}, nil
	}
	return ident.Hash("exp/tools/1", string(p.template.tools))
}

// ToolsPlan says how many tools the run has, and whether the template shows them.
func (p *Prompter) ToolsPlan() (n int, ignored bool) {
	if p.template == nil || len(p.template.tools) == 0 {
		return 0, false
	}
	var list []json.RawMessage
	if json.Unmarshal(p.template.tools, &list) != nil {
		return 0, false
	}
	return len(list), p.template.ignores(&rollout.Problem{Prompt: "?"})
}

// ShowsTools reports whether the chat template shows the tools of a chat. DeepSeek's published ones, for example, do
// not: there a message must describe them.
func (p *Prompter) ShowsTools() bool {
	const tool = `[{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
		"properties": {"x": {"type": "string", "description": "d"}}, "required": ["x"]}}}]`
	return p.template != nil && !p.template.ignores(&rollout.Problem{Prompt: "?", Tools: json.RawMessage(tool)})
}

// NoteTools adds problems of a file to those whose tools Plan counts.
func (p *Prompter) NoteTools(problems []rollout.Problem) {
	own, lost := p.WithoutTools(problems)
	p.ownTools, p.lostTools = p.ownTools+own, p.lostTools+lost
}

// WithoutTools counts the problems with tools of their own, and those whose prompts do not show them.
func (p *Prompter) WithoutTools(problems []rollout.Problem) (own, lost int) {
	for i := range problems {
		if len(problems[i].Tools) == 0 {
			continue
		}
		own++
		if p.template == nil || p.template.ignores(&problems[i]) {
			lost++
		}
	}
	return own, lost
}
