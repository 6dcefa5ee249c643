package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// Template is a parsed template. Several goroutines may render it at once.
type Template struct {
	source string // normalised, for places in errors
	digest string
	body   []stmt
	fn     *funcInfo
	scope  scope
}

// Parse reads a template. It returns an *Error for bad syntax, an unknown tag, filter or
// test, or a template beyond the limits.
func Parse(source string) (*Template, error) {
	if len(source) > maxSource {
		return nil, &Error{Line: 1, Column: 1, Msg: "the template is larger than 1 MiB", err: ErrLimit}
	}
	if !utf8.ValidString(source) {
		return nil, &Error{Line: 1, Column: 1, Msg: "the template is not UTF-8"}
	}
	sum := sha256.Sum256([]byte(source))
	t := &Template{source: normalise(source), digest: hex.EncodeToString(sum[:])}
	tokens, err := lex(t.source)
	if err == nil {
		p := &parser{tokens: tokens}
		t.body, err = p.body()
	}
	if err == nil {
		t.fn, t.scope, err = compile(t.body)
	}
	if err != nil {
		return nil, t.placed(err)
	}
	return t, nil
}

// Digest returns the sha256 of the source, in hexadecimal digits.
func (t *Template) Digest() string { return t.digest }

// placed turns an error of the parser or of a rendering into an *Error.
func (t *Template) placed(err error) error {
	pos, cause := 0, err
	var s *syntaxError
	var l *located
	var py *pyError
	e := &Error{Msg: err.Error()}
	switch {
	case errors.As(err, &s):
		pos, cause = s.pos, s.err
	case errors.As(err, &l):
		pos, cause = l.pos, l.err
	}
	if errors.As(err, &py) {
		e.Raised = py.kind == kindRaised
	} else if cause != nil {
		e.err = cause
	}
	e.Line, e.Column = place(t.source, pos)
	return e
}

// RenderVars renders with arbitrary variables; nil means none. date is the date of
// strftime_now, zero for DefaultDate. It returns an *Error; if ctx ends or a limit is
// reached, errors.Is finds that in it.
func (t *Template) RenderVars(ctx context.Context, vars *Dict, date time.Time) (string, error) {
	if vars == nil {
		vars = &Dict{}
	}
	if date.IsZero() {
		date = DefaultDate()
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	f := &frame{slots: make([]Value, len(t.fn.slots))}
	st := &state{ctx: ctx, check: stepsPerCheck, out: &strings.Builder{}, top: f, vars: vars, date: date}
	st.enter(t.scope, f)
	if _, err := st.run(t.body, f); err != nil {
		return "", t.placed(err)
	}
	return st.out.String(), nil
}

// Input holds the inputs of a chat template.
type Input struct {
	Messages            []Message
	Tools               Value             // list of definitions; nil means none
	Documents           Value             // list; nil means none
	AddGenerationPrompt bool              // end with the beginning of an assistant message
	Special             map[string]string // bos_token, eos_token, …
	Vars                *Dict             // further variables such as enable_thinking; nil means none
	Date                time.Time         // for strftime_now; zero means DefaultDate
	TextParts           bool              // a content that is text becomes a list of one part
}

// variables returns the template's variables as transformers sets them: missing tools and
// documents are None.
func (in Input) variables() *Dict {
	d := &Dict{}
	for name, text := range in.Special {
		d.Set(name, Str(text))
	}
	if in.Vars != nil {
		for i := range in.Vars.Len() {
			if name, ok := in.Vars.Key(i); ok {
				d.Set(name, in.Vars.At(i))
			}
		}
	}
	list := &List{Items: make([]Value, len(in.Messages))}
	for i, m := range in.Messages {
		if text, ok := m.Text(); ok && in.TextParts {
			part := &Dict{}
			part.Set("type", Str("text"))
			part.Set("text", Str(text))
			m = m.With("content", &List{Items: []Value{part}})
		}
		list.Items[i] = m.value()
	}
	d.Set("messages", list)
	for name, v := range map[string]Value{"tools": in.Tools, "documents": in.Documents} {
		d.Set(name, optional(v, None{}))
	}
	d.Set("add_generation_prompt", Bool(in.AddGenerationPrompt))
	return d
}

// Render returns the text of a chat. Errors are as for RenderVars.
func (t *Template) Render(ctx context.Context, in Input) (string, error) {
	return t.RenderVars(ctx, in.variables(), in.Date)
}
