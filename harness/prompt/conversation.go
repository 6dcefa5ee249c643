package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"

	"exp/eval/layout"
	"exp/experiments/quantity"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// ConversationPlan says what SFT learns from.
type ConversationPlan struct {
	Conversations int `json:"conversations"`
	Tokens        int `json:"tokens"`
	Learned       int `json:"learned"` // of them
	Longest       int `json:"longest"` // tokens of a conversation
	Cut           int `json:"cut,omitempty"`
	// Lost are the conversations left out because nothing to learn is within sft.max_tokens.
	Lost int `json:"lost,omitempty"`
	// Images are those that the conversations show; nil: none.
	Images *ImagePlan `json:"images,omitempty"`
	// First is the first conversation, as the model reads it.
	First []ConversationPart `json:"first"`
}

// ConversationPart is text that is learned, or only read.
type ConversationPart struct {
	Learned bool   `json:"learned"`
	Text    string `json:"text"` // with special tokens
}

// String describes it in a line.
func (t *ConversationPlan) String() string {
	s := fmt.Sprintf("%s of up to %d tokens; %.0f %% of all %d are learned, the assistant's",
		quantity.Plural(t.Conversations, "conversation"), t.Longest, 100*float64(t.Learned)/float64(max(1, t.Tokens)),
		t.Tokens)
	if t.Cut > 0 {
		s += fmt.Sprintf("; sft.max_tokens cuts %d", t.Cut)
	}
	if t.Lost > 0 {
		s += fmt.Sprintf("; %d left out, as it leaves nothing of them to learn", t.Lost)
	}
	return s + t.Images.among()
}

// Conversation is a conversation as the model learns it. Inserted are the parts that it only reads.
type Conversation struct {
	Prompt []int32
	rollout.Completion
	mask    []string // what stands between these two texts is not learned; empty: everything is
	most    int      // tokens, prompt included; 0: any number
	cut     bool
	thought bool              // the template begins every answer with thought
	images  []rollout.Picture // that are not written yet
	written int               // images written so far
}

// next returns the images that messages show, the next ones of the conversation.
func (x *Conversation) next(list []rollout.Message) (shown []rollout.Picture) {
	n := 0
	for _, m := range list {
		n += m.Images()
	}
	n = min(n, len(x.images)) // a different number is refused later
	shown, x.images = x.images[:n], x.images[n:]
	x.written += n
	return shown
}

// thoughtMark begins the thoughts of an answer; some templates end a prompt with it.
const thoughtMark = "<think>"

// opensThought reports whether a prompt ends with thoughtMark.
func (p *Prompter) opensThought(prompt []int32) bool {
	return strings.HasSuffix(strings.TrimSpace(p.written(prompt[max(0, len(prompt)-16):])), thoughtMark)
}

// OpensThought reports whether the prompt of a problem ends within the model's thoughts.
func (p *Prompter) OpensThought(q *rollout.Problem) bool {
	ids, err := p.Encode(q)
	return err == nil && p.template != nil && p.opensThought(ids)
}

// LongError is returned for a conversation that the model has no positions for.
type LongError struct{ error }

// errNoTemplate is the error for messages in a run without a chat template.
var errNoTemplate = errors.New("the run has no chat template, which writes the messages: name one, data.chat")

// tooLong returns an error for an answer whose tokens with its prompt are more than a model's positions (0: unknown).
// key is the setting that leaves such rows out, and what names them.
func tooLong(where string, tokens, positions int, key, what string) error {
	if positions == 0 || tokens <= positions {
		return nil
	}
	return &LongError{fmt.Errorf("%s: an answer with its prompt has %d tokens, the model has %d positions; "+
		"%s: %[3]d leaves such %[5]s out", where, tokens, positions, key, what)}
}

// conversation encodes a conversation as sampling encodes its turns: the prompt up to the first answer, then each
// answer with the token that ends it and what the chat template writes from there to where the assistant speaks
// again. What follows the last answer to learn is left out. It returns nil if x.most leaves nothing to learn. x says
// how to learn it, and is filled.
func (p *Prompter) conversation(q *layout.Conversation, x *Conversation) (*Conversation, error) {
	if len(q.Messages) == 0 {
		return p.continuation(q, x)
	}
	if err := p.checkImages(&q.Problem); err != nil {
		return nil, err
	}
	x.images = q.Images
	if p.template == nil {
		return nil, errNoTemplate
	}
	end, err := p.End()
	if err != nil {
		return nil, err
	}
	list, tools := p.template.messagesOf(&q.Problem), p.template.toolsOf(&q.Problem)
	answer := func(m rollout.Message) bool { return m.Role == "assistant" }
	at := len(list) - len(q.Messages) + q.Asked
	at += max(0, slices.IndexFunc(list[at:], answer))
	first := 1 - (len(list) - len(q.Messages)) - q.Before // number of list[0] in the row's list
	asked := x.next(list[:at])
	if x.Prompt, err = p.EncodeChat(list[:at], tools, true, asked...); err == nil && len(asked) == 0 {
		err = p.known(x.Prompt)
	}
	if err != nil {
		return nil, fmt.Errorf("the prompt, before message %d: %w", at+first, err)
	}
	x.thought = p.opensThought(x.Prompt)
	last := len(list) - 1
	for !answer(list[last]) || !layout.Learned(list[last]) {
		last--
	}
	for {
		next := at + 1
		for next < len(list) && !answer(list[next]) {
			next++
		}
		if err := p.answer(x, list[at:next], tools, end); err != nil {
			return nil, fmt.Errorf("message %d: %w", at+first, err)
		}
		if at == last {
			return x.shortened(), nil
		}
		before := x.written
		ids, err := p.Answered(end, nil, list[at+1:next], before, x.next(list[at+1:next])...)
		if err != nil {
			return nil, fmt.Errorf("between messages %d and %d: %w", at+first, next+first, err)
		}
		x.add(ids, false)
		at = next
	}
}

// add appends tokens; those that are not learned become an inserted part, or the end of the last one.
func (x *Conversation) add(ids []int32, learned bool) {
	from := len(x.Tokens)
	x.Tokens = append(x.Tokens, ids...)
	n := len(x.Inserted)
	switch {
	case learned || len(ids) == 0:
	case n > 0 && x.Inserted[n-1].End == from:
		x.Inserted[n-1].End = len(x.Tokens)
	default:
		x.Inserted = append(x.Inserted, rollout.Span{Start: from, End: len(x.Tokens)})
	}
}

// answer adds the assistant's message that turn begins with, and end. The messages after it show the template what
// its calls were answered.
func (p *Prompter) answer(x *Conversation, turn []rollout.Message, tools json.RawMessage, end int32) error {
	text, mark, err := p.answerText(turn, tools)
	if err != nil {
		return err
	}
	if x.thought && !slices.ContainsFunc(turn[0].More, func(f rollout.Field) bool { return layout.Rendered(f.Name) }) {
		rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \n"), thoughtMark)
		if !ok {
			return fmt.Errorf("the chat template begins every answer with %s, and this one does not; write "+
				"%s…</think> into the content, or use another template (data.chat)", thoughtMark, thoughtMark)
		}
		text = strings.TrimPrefix(rest, "\n")
	}
	learned := layout.Learned(turn[0])
	if err := p.split(x, text, mark, p.special(), learned); err != nil {
		return err
	}
	x.add([]int32{end}, learned)
	return nil
}

// split adds a text; what x.mask encloses is not learned. mark stands where e has cut the text.
func (p *Prompter) split(x *Conversation, text string, mark rune, e *escaper, learned bool) error {
	var open, shut string
	if m := x.mask; len(m) == 2 {
		open, shut = e.cut(m[0], mark), e.cut(m[1], mark)
	}
	for text != "" {
		before, inner, found := text, "", false
		if open != "" {
			before, inner, found = strings.Cut(text, open)
		}
		ids, err := p.ownIDs(before, mark)
		if err != nil {
			return err
		}
		if x.add(ids, learned); !found {
			return nil
		}
		end := x.mask[1]
		if inner, text, found = strings.Cut(inner, shut); !found {
			end = "" // what a tool said goes on to the end
		}
		inner = strings.ReplaceAll(inner, string(mark), "")
		if ids, err = p.Inserted(x.mask[0], inner, end); err != nil {
			return err
		}
		x.add(ids, false)
	}
	return nil
}

// special keeps text of an assistant from becoming a special token, if data.escape_special says so. Other added
// tokens, such as <think>, are what the policy itself would write.
func (p *Prompter) special() *escaper {
	if p.escaper == nil {
		return &escaper{}
	}
	return &escaper{tokenizer.SpecialTexts(p.Tokenizer)}
}

// ownIDs returns the tokens of a text of the assistant.
func (p *Prompter) ownIDs(text string, mark rune) (ids []int32, err error) {
	if text == "" {
		return nil, nil
	}
	if ids, err = p.special().encode(p.Tokenizer, text, mark, tokenizer.Options{Added: true}); err == nil {
		err = p.known(ids)
	}
	if err != nil {
		return nil, err
	}
	return p.illustrated(nil, ids)
}

// answerText returns the text of the assistant's message that turn begins with, up to the token that ends it: its
// content, or what the chat template makes of a message with calls or reasoning. mark stands at its cuts.
func (p *Prompter) answerText(turn []rollout.Message, tools json.RawMessage) (text string, mark rune, err error) {
	m := turn[0]
	m.More = slices.DeleteFunc(slices.Clone(m.More), func(f rollout.Field) bool { return !layout.Rendered(f.Name) })
	n := 1 // with the tools' answers, which some templates count
	for n < len(turn) && turn[n].Role == "tool" {
		n++
	}
	list := append([]rollout.Message{{Role: "user", Content: askedBefore}, m}, turn[1:n]...)
	end, err := p.End()
	if err != nil {
		return "", 0, err
	}
	cuts := p.special()
	if p.escaper == nil { // the end token in an argument does not end the answer
		cuts = &escaper{[]string{p.Tokenizer.Token(end)}}
		defer func() { text = strings.ReplaceAll(text, string(mark), "") }()
	}
	if list, _, mark, err = cuts.chat(list, nil); err != nil {
		return "", 0, err
	}
	m = list[1]
	if len(m.More) == 0 {
		return p.template.opened(m.Content), mark, nil
	}
	head, err := p.template.render(list[:1], tools, true)
	if err != nil {
		return "", 0, err
	}
	whole, err := p.template.render(list, tools, false)
	if err != nil {
		return "", 0, err
	}
	text, ok := strings.CutPrefix(whole, head)
	if !ok {
		return "", 0, errors.New("the chat template does not write a message with calls or reasoning as the " +
			"continuation of a prompt; write all of it as text into the content")
	}
	if text, _, ok = strings.Cut(text, p.Tokenizer.Token(end)); !ok && n > 1 {
		return "", 0, fmt.Errorf("the chat template does not end it with %s", p.Tokenizer.Token(end))
	}
	if lost := lostIn(m, text); lost != "" {
		return "", 0, fmt.Errorf("the chat template drops its %s; use another one (data.chat), or write the text "+
			"into the content", lost)
	}
	return text, mark, nil
}

// lostIn names the part of a message that its text lacks, in other white space; empty for none.
func lostIn(m rollout.Message, text string) string {
	text = squeeze(text)
	if !strings.Contains(text, squeeze(m.Content)) {
		return "content"
	}
	for _, f := range m.More {
		var calls []struct {
			Function struct{ Name string }
		}
		var reason string
		switch {
		case f.Name == "tool_calls" && json.Unmarshal(f.Value, &calls) == nil:
			for _, c := range calls {
				if !strings.Contains(text, squeeze(c.Function.Name)) {
					return f.Name
				}
			}
		case json.Unmarshal(f.Value, &reason) == nil && !strings.Contains(text, squeeze(reason)):
			return f.Name
		}
	}
	return ""
}

// squeeze removes white space.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// shortened cuts a conversation at x.most tokens, and then after its last token to learn; nil if none is left.
func (x *Conversation) shortened() *Conversation {
	room := x.most - len(x.Prompt)
	if x.most == 0 || room >= len(x.Tokens) {
		return x
	}
	room = max(room, 0)
	x.cut = true
	for n := len(x.Inserted); n > 0 && x.Inserted[n-1].End >= room; n-- {
		room = min(room, x.Inserted[n-1].Start)
		x.Inserted = x.Inserted[:n-1]
	}
	if x.Tokens = x.Tokens[:room]; room == 0 {
		return nil
	}
	x.Finish = rollout.FinishLength
	return x
}

// Conversations encodes conversations on all processors. Those with nothing to learn are nil.
func (p *Prompter) Conversations(ctx context.Context, list []layout.Conversation) ([]*Conversation, ConversationPlan,
	error) {
	out, errs := make([]*Conversation, len(list)), make([]error, len(list))
	inParallel(ctx, len(list), func(i int) {
		out[i], errs[i] = p.conversation(&list[i], p.learning())
	})
	var plan ConversationPlan
	if err := ctx.Err(); err != nil {
		return nil, plan, err
	}
	for i, x := range out {
		switch {
		case errs[i] != nil && list[i].Where == "":
			return nil, plan, fmt.Errorf("conversation %s: %w", list[i].ID, errs[i])
		case errs[i] != nil:
			return nil, plan, fmt.Errorf("%s: %w", list[i].Where, errs[i])
		case x == nil:
			plan.Lost++
			continue
		case x.cut:
			plan.Cut++
		}
		plan.Conversations++
		plan.Tokens += len(x.Prompt) + len(x.Tokens)
		plan.Learned += x.SampledTokens()
		plan.Longest = max(plan.Longest, len(x.Prompt)+len(x.Tokens))
		p.countImages(&plan.Images, list[i].Images)
	}
	return out, plan, nil
}

// learning returns an empty conversation, to be learned as the block sft says.
func (p *Prompter) learning() *Conversation {
	return &Conversation{mask: p.sft.Mask, most: p.sft.MaxTokens}
}

// inParallel calls f with the numbers below n on all processors, until ctx ends.
func inParallel(ctx context.Context, n int, f func(i int)) {
	var all sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n)
	for w := range workers {
		all.Go(func() {
			for i := w; i < n && ctx.Err() == nil; i += workers {
				f(i)
			}
		})
	}
	all.Wait()
}

// parts returns the text of a conversation, in which the images have their names.
func (p *Prompter) parts(q *layout.Conversation, x *Conversation) (list []ConversationPart) {
	images := q.Images
	add := func(learned bool, ids []int32) {
		if len(ids) == 0 {
			return
		}
		ids, n := p.padded(images, ids)
		list = append(list, ConversationPart{learned, p.written(ids, images[:n]...)})
		images = images[n:]
	}
	read, at := x.Prompt, 0
	for _, s := range append(slices.Clone(x.Inserted), rollout.Span{Start: len(x.Tokens), End: len(x.Tokens)}) {
		if s.Start == 0 {
			read = slices.Concat(read, x.Tokens[:s.End])
		} else {
			add(false, read)
			add(true, x.Tokens[at:s.Start])
			read = x.Tokens[s.Start:s.End]
		}
		at = s.End
	}
	return list
}

// written returns the text of tokens, with special ones, and the names of images in place of their pads.
func (p *Prompter) written(ids []int32, images ...rollout.Picture) string {
	var b strings.Builder
	for _, id := range ids {
		if len(images) > 0 && p.isPad(id) {
			b.WriteString(images[0].String())
			images = images[1:]
		} else if piece := p.Tokenizer.Piece(id); len(piece) > 0 {
			b.Write(piece)
		} else {
			b.WriteString(p.Tokenizer.Token(id))
		}
	}
	return b.String()
}

// CheckConversations finds conversations that the run cannot learn from, or that are longer than so many positions (0:
// unknown), and notes for Plan what the others hold.
func (p *Prompter) CheckConversations(list []layout.Conversation, positions int) error {
	examples, plan, err := p.Conversations(context.Background(), list)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(examples, func(x *Conversation) bool { return x != nil }); i >= 0 {
		plan.First = p.parts(&list[i], examples[i])
	}
	p.learns = &plan
	if n := p.sft.ProblemsPerStep; plan.Conversations < n {
		return fmt.Errorf("%s has %d conversations to learn from, sft.problems_per_step asks for %d", p.sft.Source,
			plan.Conversations, n)
	}
	for i, x := range examples {
		if x == nil || positions == 0 {
			continue
		}
		if n := len(x.Prompt) + len(x.Tokens); n > positions {
			return &LongError{fmt.Errorf("%s: the conversation has %d tokens, the model has %d positions; "+
				"sft.max_tokens: %d cuts it", list[i].Where, n, positions, positions)}
		}
	}
	return nil
}
