package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// WeightField is the field of an assistant's message that says whether to learn from it: 1 or 0, as in OpenAI's
// files for fine-tuning.
const WeightField = "weight"

// conversationFields are the columns with the messages, in the order they are looked for.
func conversationFields() []string { return []string{"messages", "conversations", "conversation"} }

// roles maps each role found in published conversations to the chat template's name for it.
func roles() map[string]string {
	return map[string]string{"system": "system", "developer": "developer", "user": "user", "assistant": "assistant",
		"tool": "tool", "function": "tool", // OpenAI's, the last of old files
		"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"} // ShareGPT's
}

// Conversation is a conversation to learn from, and the place of its row. One without messages is a text, Prompt, and
// what to learn after it, Target.
type Conversation struct {
	rollout.Problem // Messages are all of them, the assistant's too
	// Asked are the first messages, which ask: nothing of them is learned, and the chat template writes all of
	// them at once. 0: those before the first answer.
	Asked  int    `json:"asked,omitempty"`
	Where  string `json:"-"`
	Before int    `json:"-"` // messages added in front of the row's list: 1 if the column system gave one, else 0

	shown *illustrator // of the row, while it is read; nil: its content is text alone
}

// Conversations reads a conversation from each row: a list of messages in the column messages, conversations or
// conversation, as OpenAI writes them (role, content, tool_calls) or ShareGPT (from, value). Or it has TRL's columns
// prompt and completion, two such lists or two texts. Further columns are tools (see Tools), system, a text to put
// before a conversation without a system message, and id. Duplicate rows stay: repeating a row is a way to weight it.
//
// A user's messages may show images, as Images says for problems; nil refuses rows with some.
//
// Messages come out as chat templates take them. Content is text, or has parts where it shows images. Fields that are
// null are left out, in tool calls too, where parquet files have them for the arguments of other tools. Arguments that
// are a text become the object that it spells. Errors are *rows.Error.
func Conversations(all iter.Seq2[rows.Row, error], images *Images) (list []Conversation, err error) {
	owner := map[string]string{}
	for r, err := range all {
		if err != nil {
			return nil, err
		}
		c, err := conversation(r, images)
		if err != nil {
			return nil, err
		}
		c.ID = numbered(c.ID, owner)
		owner[c.ID] = r.Where
		list = append(list, c)
	}
	return list, nil
}

// begun returns a conversation with a row's place, id, tools and images; it shows none yet.
func begun(r rows.Row, x *Images) (c Conversation, err error) {
	if x == nil {
		err = textOnly(r)
	} else {
		c.shown, err = x.of(r)
	}
	if err != nil {
		return c, err
	}
	c.Where, c.ID, c.Tools = r.Where, strconv.Itoa(r.Index), Tools(r)
	if r.Has("id") {
		c.ID, err = r.Text("id")
	}
	return c, err
}

// finish takes the images that the messages show. where names them for errors.
func (c *Conversation) finish(where string) error {
	x := c.shown
	if x == nil {
		return nil
	}
	c.Images, c.shown = x.list, nil
	return x.check(where)
}

func conversation(r rows.Row, x *Images) (c Conversation, err error) {
	if c, err = begun(r, x); err == nil {
		err = c.read(r)
	}
	if err == nil {
		err = c.finish("conversation")
	}
	return c, err
}

// read reads the messages or texts of a row.
func (c *Conversation) read(r rows.Row) error {
	fields := conversationFields()
	i := slices.IndexFunc(fields, func(name string) bool { return r.Has(name) })
	switch {
	case i >= 0:
	case r.Has(promptField, completionField):
		return c.readAnswer(r, completionField)
	default:
		return r.Errorf("", "no conversation: looked for the columns %s, lists of messages, and for %s with %s",
			strings.Join(fields, ", "), promptField, completionField)
	}
	field := fields[i]
	if err := c.readMessages(r, field); err != nil {
		return err
	}
	if err := checkTurns(c.Messages, systemOf(r) != ""); err != nil {
		return r.Errorf(field, "%w", err)
	}
	c.lead(r)
	return nil
}

// messageItems returns the messages in a column: a list, or a text that spells one.
func messageItems(r rows.Row, field string) (items []json.RawMessage, err error) {
	raw, err := r.Raw(field)
	if err != nil {
		return nil, err
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	if json.Unmarshal(raw, &items) != nil {
		return nil, r.Errorf(field, "not a list of messages")
	}
	return items, nil
}

// checkTurns returns an error unless something asks, and an assistant answers. led says that another message comes
// before them.
func checkTurns(list []rollout.Message, led bool) error {
	learned := false
	for i, m := range list {
		if m.Role != "assistant" {
			continue
		}
		if i == 0 && !led {
			return fmt.Errorf("message 1 is the assistant's: a message must come before it, of system or user")
		}
		says := func(f rollout.Field) bool { return Rendered(f.Name) }
		if m.Content == "" && !slices.ContainsFunc(m.More, says) {
			return fmt.Errorf("message %d: the assistant says and calls nothing", i+1)
		}
		learned = learned || Learned(m)
	}
	if !learned {
		return fmt.Errorf("no message of the assistant to learn from, among %d", len(list))
	}
	return nil
}

// Rendered reports whether chat templates write a field of an assistant's message into its text.
func Rendered(name string) bool {
	return name == "tool_calls" || strings.HasPrefix(name, "reasoning") || name == "thinking"
}

// Learned reports whether an assistant's message is to be learned: its weight is not 0.
func Learned(m rollout.Message) bool {
	return !slices.ContainsFunc(m.More, func(f rollout.Field) bool { return f.Name == WeightField && !isOne(f.Value) })
}

func isOne(raw json.RawMessage) bool {
	x, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && x == 1
}

// message reads a message of OpenAI's or ShareGPT's form. show, if it is not nil, makes parts of content that shows
// images, and returns their number.
func message(raw json.RawMessage, show func(*rollout.Message) (int, error)) (m rollout.Message, err error) {
	var share struct {
		Role, From, Value *string
		Weight            json.RawMessage
	}
	if err := json.Unmarshal(raw, &share); err != nil {
		return m, fmt.Errorf("it is not an object with role and content")
	}
	source := ""
	if share.Role == nil && share.From != nil {
		m.Role, source = *share.From, *share.From
		if share.Value == nil {
			return m, fmt.Errorf("it has no value")
		}
		m.Content = *share.Value
		if share.Weight != nil {
			m.More = []rollout.Field{{Name: WeightField, Value: share.Weight}}
		}
	} else if err := json.Unmarshal(raw, &m); err != nil {
		return m, err
	}
	role, known := roles()[m.Role]
	if !known {
		return m, fmt.Errorf("unknown role %q; known are system, developer, user, assistant and tool, and ShareGPT's "+
			"human, gpt, function_call and observation", m.Role)
	}
	m.Role = role
	if source == "function_call" {
		m.More, m.Content = append(m.More, rollout.Field{Name: "tool_calls", Value: callList(m.Content)}), ""
	}
	if role != "assistant" && m.Parts != nil && len(m.Parts) == 0 {
		return m, fmt.Errorf("it has no content")
	}
	images := 0
	if show != nil {
		if images, err = show(&m); err != nil {
			return m, err
		}
	}
	if images == 0 {
		if m, err = plainContent(m); err != nil {
			return m, err
		}
	}
	m.More, err = fieldsOf(m)
	return m, err
}

// callList returns the calls that a text spells, as a list.
func callList(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") {
		text = "[" + text + "]"
	}
	return json.RawMessage(text)
}

// plainContent makes the content of a message text; content that is absent or null is empty.
func plainContent(m rollout.Message) (rollout.Message, error) {
	var parts []struct {
		Type string
		Text *string
	}
	if len(m.Parts) > 0 {
		if err := json.Unmarshal(m.Parts, &parts); err != nil {
			return m, fmt.Errorf("its content is neither text nor a list of parts")
		}
	}
	m.Parts = nil
	for _, p := range parts {
		if p.Text == nil {
			return m, fmt.Errorf("its content has a part of type %q; only text and images are supported", p.Type)
		}
		m.Content += *p.Text
	}
	return m, nil
}

// fieldsOf returns the further fields of a message in order, as templates take them.
func fieldsOf(m rollout.Message) (list []rollout.Field, err error) {
	for _, f := range m.More {
		switch v := string(f.Value); {
		case v == "null", f.Name == "tool_calls" && (v == "[]" || v == `""`):
			continue
		case f.Name == WeightField && m.Role == "assistant":
			if !isOne(f.Value) && strings.Trim(v, "0.") != "" {
				return nil, fmt.Errorf("its weight is %s; 1 learns it, 0 does not", v)
			}
		case f.Name == WeightField:
			continue
		case f.Name == "function_call": // of OpenAI's old files
			f.Name, f.Value = "tool_calls", callList(v)
			fallthrough
		case f.Name == "tool_calls":
			if f.Value, err = ToolCalls(f.Value); err != nil {
				return nil, err
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// ToolCalls returns a list of calls as templates take it: {"function": {"name": …, "arguments": {…}}}. Arguments may
// be an object or its text.
func ToolCalls(raw json.RawMessage) (json.RawMessage, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var calls []json.RawMessage
	if json.Unmarshal(raw, &calls) != nil {
		return nil, fmt.Errorf("tool_calls is not a list of calls in JSON")
	}
	raw, err := filled(raw, true)
	if err != nil {
		return nil, fmt.Errorf("tool_calls: %w", err)
	}
	if err := json.Unmarshal(raw, &calls); err != nil {
		return nil, err
	}
	for i, call := range calls {
		var c struct {
			Name     *string
			Function *struct{ Name *string }
		}
		switch err := json.Unmarshal(call, &c); {
		case err != nil, c.Name == nil && (c.Function == nil || c.Function.Name == nil):
			return nil, fmt.Errorf("tool call %d has no name", i+1)
		case c.Function == nil:
			calls[i] = slices.Concat([]byte(`{"type":"function","function":`), call, []byte("}"))
		}
	}
	return json.Marshal(calls)
}

// filled returns JSON without the fields of objects that are null. calls: it is calls of tools, whose arguments, if
// they are a text or null, become the object that is meant. The order of fields stays.
func filled(raw json.RawMessage, calls bool) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	start, err := d.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') && start != json.Delim('[') {
		return raw, nil
	}
	var parts [][]byte
	for d.More() {
		name := json.Token("")
		if start == json.Delim('{') {
			if name, err = d.Token(); err != nil {
				return nil, err
			}
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		switch {
		case start == json.Delim('['):
			if v, err = filled(v, calls); err != nil {
				return nil, err
			}
			parts = append(parts, v)
			continue
		case calls && name == "arguments" && (v[0] == '"' || string(v) == "null"):
			v, err = arguments(v)
		case string(v) == "null":
			continue
		default:
			v, err = filled(v, calls && name == "function")
		}
		if err != nil {
			return nil, err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, slices.Concat(key, []byte(":"), v))
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return slices.Concat(raw[:1], bytes.Join(parts, []byte(",")), raw[len(raw)-1:]), nil
}

// arguments returns the object that a text of arguments spells; an empty one for none.
func arguments(raw json.RawMessage) (json.RawMessage, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}"), nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return nil, fmt.Errorf("the arguments %s spell no JSON object", raw)
	}
	var b bytes.Buffer
	err := json.Compact(&b, []byte(text))
	return b.Bytes(), err
}
