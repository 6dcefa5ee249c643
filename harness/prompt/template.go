package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"exp/harness/config"
	"exp/train/chat"
	"exp/train/rollout"
	"exp/train/tokenizer"
	"exp/train/toolcall"
)

// template is the chat template of a run with its variables other than the messages.
type template struct {
	*chat.Template
	from    string // its file
	source  string
	own     bool   // named by data.chat; the model's folder has another one or none
	system  string // for chats without one
	vars    *chat.Dict
	date    time.Time
	special map[string]string
	tools   json.RawMessage // of data.tools; nil: none
	// withTools renders chats with tools, if the model has a template for them.
	withTools  *chat.Template
	toolSource string // of the template that renders chats with tools
	channels   bool   // an answer is several messages: the token behind one does not end the answer
	parts      bool   // contents must be lists of parts
	place      string // what it writes for an image, where the processor puts written (ImageReader)
	written    string
	opening    string // what such a template writes before an answer's text and a prompt does not end with, a space
}

// mostTemplate is more than a template may have; the error of chat.Parse gives the limit.
const mostTemplate = 2 << 20

// newTemplate returns the template that data.chat names; nil for plain text. tok is the tokenizer,
// whose folder may have one.
func newTemplate(c *config.Run, tok tokenizer.Tokenizer) (*template, error) {
	if c.Data.Chat == config.None {
		return nil, nil
	}
	source, from, err := templateSource(c, tok)
	if errors.Is(err, chat.ErrNoTemplate) {
		if c.Data.Tools != config.None && c.Data.Tools != "" {
			return nil, &ToolsError{errors.New("the model's folder has no chat template to give data.tools to; name " +
				"one: data.chat")}
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	calls, _ := toolcall.SyntaxOf(source)
	t := &template{channels: calls.Channels, from: from, source: source, toolSource: source,
		own: c.Data.Chat != config.Auto, system: c.Data.System, special: tok.SpecialTokens().Named}
	if t.Template, err = chat.Parse(source); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if t.date, err = time.Parse(time.DateOnly, c.Data.TemplateDate); err != nil {
		return nil, fmt.Errorf("data.template_date: %w", err)
	}
	vars, err := chat.FromGo(c.Data.TemplateVars)
	if err != nil {
		return nil, fmt.Errorf("data.template_vars: %w", err)
	}
	t.vars, _ = vars.(*chat.Dict)
	if t.parts = chat.ReadsParts(context.Background(), t.Template, t.input()); t.parts {
		t.opening = t.beforeAnswer()
	}
	return t, t.useTools(c, tok.Files())
}

func templateSource(c *config.Run, tok tokenizer.Tokenizer) (source, from string, err error) {
	path := c.Data.Chat
	if path == config.Auto {
		return chat.SelectTemplate(tok.Files(), "", false)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer f.Close() // only read: an error on closing loses nothing
	b, err := io.ReadAll(io.LimitReader(f, mostTemplate))
	return string(b), path, err
}

// messagesOf returns the messages of a problem: its own, or its prompt as one of the user, after
// data.system if they have no system message.
func (t *template) messagesOf(p *rollout.Problem) []rollout.Message {
	list := p.Messages
	if len(list) == 0 {
		list = []rollout.Message{{Role: "user", Content: p.Prompt}}
	}
	if t.system != "" && !slices.ContainsFunc(list,
		func(m rollout.Message) bool { return m.Role == "system" || m.Role == "developer" }) {
		list = append([]rollout.Message{{Role: "system", Content: t.system}}, list...)
	}
	return list
}

// prompt returns the text of a chat that offers tools, up to where the assistant speaks.
func (t *template) prompt(list []rollout.Message, tools json.RawMessage) (string, error) {
	return t.render(list, tools, true)
}

// render returns the text of a chat that offers tools; open ends it where the assistant speaks.
func (t *template) render(list []rollout.Message, tools json.RawMessage, open bool) (string, error) {
	text, err := t.renderPlaces(list, tools, open)
	if t.place != "" {
		text = strings.ReplaceAll(text, t.place, t.written)
	}
	return text, err
}

// renderPlaces is render with the places of images as the template writes them.
func (t *template) renderPlaces(list []rollout.Message, tools json.RawMessage, open bool) (string, error) {
	in := t.input()
	in.AddGenerationPrompt = open
	if len(tools) > 0 {
		var err error
		if in.Tools, err = chat.DecodeJSON(tools); err != nil {
			return "", fmt.Errorf("tools: %w", err)
		}
	}
	for _, m := range list {
		if m.Role == "assistant" {
			m.Content = strings.TrimPrefix(m.Content, t.opening) // which the template writes
		}
		raw, err := json.Marshal(m)
		if err != nil {
			return "", err
		}
		var read chat.Message
		if err := json.Unmarshal(raw, &read); err != nil {
			return "", err
		}
		in.Messages = append(in.Messages, read)
	}
	text, err := t.with(tools).Render(context.Background(), in)
	if err == nil {
		return text, nil
	}
	if list, ok := withArgumentTexts(in.Messages); ok {
		in.Messages = list
		if text, err := t.with(tools).Render(context.Background(), in); err == nil {
			return text, nil
		}
	}
	return "", err
}

// beforeAnswer returns the spaces that the template writes between the end of a prompt and the text of an answer: of
// Idefics3's "Assistant: Yes", a prompt has "Assistant:", so the policy writes " Yes".
func (t *template) beforeAnswer() string {
	list := []rollout.Message{{Role: "user", Content: askedBefore}, {Role: "assistant", Content: answerBefore}}
	prompt, err := t.prompt(list[:1], nil)
	if err != nil {
		return ""
	}
	whole, err := t.render(list, nil, false)
	if err != nil {
		return ""
	}
	rest, _ := strings.CutPrefix(whole, prompt)
	before, _, found := strings.Cut(rest, answerBefore)
	if !found || strings.Trim(before, " ") != "" {
		return ""
	}
	return before
}

// opened returns the text of an answer as the policy writes it behind a prompt.
func (t *template) opened(text string) string {
	if t == nil || strings.HasPrefix(text, t.opening) {
		return text
	}
	return t.opening + text
}

func (t *template) input() chat.Input {
	return chat.Input{Special: t.special, Vars: t.vars, Date: t.date, TextParts: t.parts}
}

// endOfTurn returns the text that the template writes between an answer and the next question; ""
// if it cannot be found.
func (t *template) endOfTurn() string {
	if text, err := chat.EndOfTurn(context.Background(), t.Template, t.input()); err == nil {
		return text
	}
	// Some templates accept only one question and its answer.
	const answer = "aX7only"
	in := t.input()
	in.Messages = []chat.Message{chat.NewMessage("user", "qX7only"), chat.NewMessage("assistant", answer)}
	text, err := t.Render(context.Background(), in)
	if err != nil {
		return ""
	}
	_, end, _ := strings.Cut(text, answer)
	return end
}
