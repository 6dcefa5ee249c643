package prompt

import (
	"context"
	"time"

	"exp/train/chat"
)

// withArgumentTexts returns messages whose calls have texts of JSON for arguments, spaced as Python writes it: some
// templates, such as DeepSeek's, join arguments to texts, and cannot write objects. ok is false if no call has an
// object.
func withArgumentTexts(list []chat.Message) (out []chat.Message, ok bool) {
	for _, m := range list {
		v, _ := m.Field("tool_calls")
		if calls, is := v.(*chat.List); is {
			texts := &chat.List{}
			for _, call := range calls.Items {
				text, changed := withArgumentText(call)
				texts.Items, ok = append(texts.Items, text), ok || changed
			}
			m = m.With("tool_calls", texts)
		}
		out = append(out, m)
	}
	return out, ok
}

// withArgumentText returns a call with the text of its arguments; ok is false if they are not an object.
func withArgumentText(call chat.Value) (_ chat.Value, ok bool) {
	f := field(call, "function")
	args, ok := field(f, "arguments").(*chat.Dict)
	if !ok {
		return call, false
	}
	t, err := chat.Parse("{{ arguments | tojson }}")
	if err != nil {
		return call, false
	}
	vars := &chat.Dict{}
	vars.Set("arguments", args)
	text, err := t.RenderVars(context.Background(), vars, time.Time{})
	if err != nil {
		return call, false // too deep, say: the template's own error tells
	}
	return with(call, "function", with(f, "arguments", chat.Str(text))), true
}

// field returns a value of a dictionary, or nil.
func field(v chat.Value, name string) chat.Value {
	d, ok := v.(*chat.Dict)
	if !ok {
		return nil
	}
	v, _ = d.Get(name)
	return v
}

// with returns a copy of a dictionary with a value.
func with(v chat.Value, name string, value chat.Value) chat.Value {
	out := &chat.Dict{}
	if d, ok := v.(*chat.Dict); ok {
		for i := range d.Len() {
			if key, ok := d.Key(i); ok {
				out.Set(key, d.At(i))
			}
		}
	}
	out.Set(name, value)
	return out
}
