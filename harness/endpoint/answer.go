package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"exp/harness/openai"
	"exp/train/generate"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// answer is the answer to a request, in OpenAI's form.
type answer struct {
	*Server
	*openai.Request
	*sampled
	caller  *caller // nil: the answer calls no tools
	id      string
	created int64
	sent    []sent // of a stream, of each completion
}

// sent is what a stream has sent of a completion.
type sent struct {
	text, tokens int // tokens: whose scores were sent
	begun, ended bool
	reader       *toolcall.Reader // of its calls; nil: it makes none
	calls        int
}

// usage counts tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"` // of the prompt, that earlier requests had computed
		Images int `json:"image_tokens,omitempty"`
	} `json:"prompt_tokens_details"`
}

// counts counts the tokens so far.
func (a *answer) counts() (u usage) {
	for _, ids := range a.Prompts {
		u.Prompt += len(ids)
		for _, id := range ids {
			if int(id) >= a.Server.x.vocab {
				u.Details.Images++
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.parts {
		if p.ended != nil && !a.hidden() {
			u.Completion += len(p.ended.Tokens)
		}
	}
	for i, ask := range a.asks { // whose Found changes no more once a completion has ended
		if slices.ContainsFunc(a.parts[i*a.N:(i+1)*a.N], func(p part) bool { return p.ended != nil }) {
			u.Details.Cached += ask.Found
		}
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// hidden reports whether the one token that the sampler draws is not shown: none is asked for.
func (a *answer) hidden() bool { return a.Most != nil && *a.Most == 0 }

// object returns the fields around choices.
func (a *answer) object(chunk bool, choices []any) map[string]any {
	kind := "text_completion"
	if a.Chat {
		kind = "chat.completion"
		if chunk {
			kind += ".chunk"
		}
	}
	return map[string]any{"id": a.id, "object": kind, "created": a.created, "model": a.Server.x.name,
		"choices": choices}
}

// whole writes the answer when all completions have ended.
func (a *answer) whole(ctx context.Context, w http.ResponseWriter) error {
	choices := make([]any, len(a.parts))
	err := a.follow(ctx, func(i int, p part) error {
		if p.ended == nil || choices[i] != nil {
			return nil
		}
		text, finish := string(p.text), p.ended.Finish.String()
		if a.hidden() {
			text, p.scores, finish = "", nil, "length"
		}
		if a.Chat {
			m, finish := a.message(i, text, p.ended.Finish)
			choices[i] = map[string]any{"index": i, "finish_reason": finish, "logprobs": a.chatScores(p.scores),
				"message": m}
			return nil
		}
		prefix, scores := a.echoed(i), a.textScores(i, 0, p.scores, true)
		choices[i] = map[string]any{"index": i, "finish_reason": finish, "text": prefix + text, "logprobs": scores}
		return nil
	})
	if err != nil {
		return err
	}
	o := a.object(false, choices)
	o["usage"] = a.counts()
	_ = openai.WriteJSON(w, http.StatusOK, o)
	return nil
}

// echoed returns the prompt of completion i, if it is asked for.
func (a *answer) echoed(i int) string {
	if !a.Echo {
		return ""
	}
	if k := i / a.N; k < len(a.Texts) {
		return a.Texts[k]
	}
	return a.Server.x.text(a.Prompts[i/a.N])
}

// text returns the text of tokens, special ones written out.
func (x *Model) text(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(x.piece(id))
	}
	return b.String()
}

// piece returns the bytes of a token: those that it adds to a text, or what a special token is called. An image's has
// none.
func (x *Model) piece(id int32) []byte {
	if int(id) >= x.vocab {
		return nil
	}
	if p := x.tok.Piece(id); len(p) > 0 {
		return p
	}
	return []byte(x.tok.Token(id))
}

// token names a token in answers: its text, or its bytes where they are not text.
func (x *Model) token(id int32) string {
	p := x.piece(id)
	if utf8.Valid(p) {
		return string(p)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range p {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// stream writes the answer as server-sent events while it is sampled.
func (a *answer) stream(ctx context.Context, w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	send := func(v any) error {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", b)
		}
		if err == nil {
			err = flush.Flush()
		}
		return err
	}
	a.sent = make([]sent, len(a.parts))
	for i := range a.sent {
		a.sent[i].reader = a.caller.reader()
	}
	chunk := func(choices []any) error {
		o := a.object(true, choices)
		if a.Usage {
			o["usage"] = nil
		}
		return send(o)
	}
	err := a.follow(ctx, func(i int, p part) error {
		for _, choice := range a.news(i, p) {
			if err := chunk([]any{choice}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && a.Usage {
		o := a.object(true, []any{})
		o["usage"] = a.counts()
		err = send(o)
	}
	if err != nil {
		if ctx.Err() == nil { // the client is there, and cannot be told by a status any more
			_ = send(map[string]any{"error": asAPI(err)})
		}
		return err
	}
	_, err = fmt.Fprint(w, "data: [DONE]\n\n")
	return err
}

// news returns the choices of a stream with the new part of completion i.
func (a *answer) news(i int, p part) (list []any) {
	s := &a.sent[i]
	// The scores of the prompt are there when the first token is.
	if s.ended || a.Echo && a.Scored && len(p.scores) == 0 && p.ended == nil {
		return nil
	}
	if !s.begun && a.Chat {
		list = append(list, a.delta(i, map[string]any{"role": "assistant", "content": ""}, nil, nil))
	}
	prefix := ""
	if !s.begun {
		prefix = a.echoed(i)
	}
	whole, scores := string(p.text), p.scores
	if p.ended == nil {
		whole = whole[:max(s.text, certain(whole, a.Params.Stop))]
	} else if a.hidden() {
		whole, scores = "", nil
	}
	text, fresh := prefix+whole[min(s.text, len(whole)):], scores[min(s.tokens, len(scores)):]
	s.text, s.ended = len(whole), p.ended != nil
	var next []any
	if a.Chat {
		next = a.chatNews(i, text, fresh, p.ended)
	} else {
		next = a.textNews(i, text, fresh, p.ended)
	}
	if len(next) > 0 {
		s.tokens, s.begun = len(scores), true
	}
	s.begun = s.begun || a.Chat
	return append(list, next...)
}

// textNews returns the choices that tell the news of a continued text; ended is nil while it goes on.
func (a *answer) textNews(i int, text string, fresh []generate.Score, ended *rollout.Completion) []any {
	var finish any
	switch {
	case ended != nil && a.hidden():
		finish = "length"
	case ended != nil:
		finish = ended.Finish.String()
	case text == "":
		return nil
	}
	s := &a.sent[i]
	return []any{map[string]any{"index": i, "text": text, "finish_reason": finish,
		"logprobs": a.textScores(i, s.tokens, fresh, !s.begun)}}
}

// chatNews is textNews for a chat. The scores come with the first choice.
func (a *answer) chatNews(i int, text string, fresh []generate.Score, ended *rollout.Completion) (list []any) {
	s := &a.sent[i]
	var calls []toolcall.Call
	if s.reader != nil {
		text, calls = s.reader.Read(text, ended != nil)
	}
	for _, d := range a.deltas(i, text, calls) {
		list, fresh = append(list, a.delta(i, d, a.chatScores(fresh), nil)), nil
	}
	if ended != nil {
		list = append(list, a.delta(i, map[string]any{}, a.chatScores(fresh), finishOf(ended.Finish, s.calls)))
	}
	return list
}

// delta returns a choice of a chat's stream.
func (a *answer) delta(i int, delta map[string]any, scores, finish any) any {
	return map[string]any{"index": i, "delta": delta, "logprobs": scores, "finish_reason": finish}
}

// certain returns how much of a text that goes on cannot be taken back: no stop string may have begun, and no
// character be cut.
func certain(text string, stop []string) int {
	n := len(text)
	for _, s := range stop {
		for k := min(len(s)-1, len(text)); k > 0; k-- {
			if strings.HasSuffix(text, s[:k]) {
				n = min(n, len(text)-k)
				break
			}
		}
	}
	for back := 1; back <= min(utf8.UTFMax-1, n); back++ {
		if c := text[n-back]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(text[n-back : n]) {
				n -= back
			}
			break
		}
	}
	return n
}

// chatScores returns logprobs as chats have them; nil if none are asked for.
func (a *answer) chatScores(list []generate.Score) any {
	if !a.Scored {
		return nil
	}
	one := func(id int32, p float32) map[string]any {
		bytes := []int{}
		for _, c := range a.Server.x.piece(id) {
			bytes = append(bytes, int(c))
		}
		return map[string]any{"token": a.Server.x.token(id), "logprob": p, "bytes": bytes}
	}
	content := []any{}
	for _, s := range list {
		top := []any{}
		for k, id := range s.Top {
			top = append(top, one(id, s.TopProb[k]))
		}
		c := one(s.Token, s.LogProb)
		c["top_logprobs"] = top
		content = append(content, c)
	}
	return map[string]any{"content": content, "refusal": nil}
}

// textScores returns logprobs as continued texts have them; nil if none are asked for. They begin with the prompt's
// if it is echoed, unless some have been sent.
func (a *answer) textScores(i, from int, list []generate.Score, first bool) any {
	if !a.Scored {
		return nil
	}
	ask := a.asks[i/a.N]
	tokens, probs, tops, offsets := []string{}, []any{}, []any{}, []int{}
	var at characters
	add := func(s generate.Score, known bool) {
		tokens, offsets = append(tokens, a.Server.x.token(s.Token)), append(offsets, at.n)
		at.add(a.Server.x.piece(s.Token))
		if !known {
			probs, tops = append(probs, nil), append(tops, nil)
			return
		}
		top := map[string]float32{a.Server.x.token(s.Token): s.LogProb}
		for k, id := range s.Top {
			top[a.Server.x.token(id)] = s.TopProb[k]
		}
		probs, tops = append(probs, s.LogProb), append(tops, top)
	}
	skip := 0
	if a.Echo {
		for k, s := range ask.Prompts {
			s.Token = ask.Prompt[k]
			add(s, k > 0)
		}
		skip = len(tokens)
	}
	if !first {
		a.mu.Lock()
		for _, s := range a.parts[i].scores[:from] {
			at.add(a.Server.x.piece(s.Token))
		}
		a.mu.Unlock()
	}
	for _, s := range list {
		add(s, true)
	}
	if first {
		skip = 0
	}
	return map[string]any{"tokens": tokens[skip:], "token_logprobs": probs[skip:], "top_logprobs": tops[skip:],
		"text_offset": offsets[skip:]}
}

// characters counts the characters of a text that comes in pieces, which may cut them: one counts when it is whole.
type characters struct {
	n    int
	rest []byte // of a character that has begun
}

func (c *characters) add(piece []byte) {
	c.rest = append(c.rest, piece...)
	for len(c.rest) > 0 && utf8.FullRune(c.rest) {
		_, size := utf8.DecodeRune(c.rest)
		c.n, c.rest = c.n+1, c.rest[size:]
	}
}
