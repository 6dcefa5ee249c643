package endpoint

import (
	"fmt"
	"slices"
	"strings"

	"exp/harness/openai"
	"exp/train/generate"
	"exp/train/rollout"
)

// defaultTexts is the default of max_tokens for texts that are continued, as in OpenAI's API.
const defaultTexts = 16

// asksFor returns the samplers' requests, one for each prompt.
func (x *Model) asksFor(r *openai.Request) (list []*generate.Ask, err error) {
	held := &holding{gallery: x.gallery}
	defer func() {
		if err != nil {
			held.release()
		}
	}()
	if err = x.encode(r, held); err != nil {
		return nil, err
	}
	for _, id := range r.Ends {
		if id < 0 || int(id) >= x.vocab {
			return nil, openai.Bad("stop_token_ids", "stop_token_ids has %d, the model's tokens are 0 to %d", id,
				x.vocab-1)
		}
	}
	for _, b := range r.Params.Bias {
		if int(b.Token) >= x.vocab {
			return nil, openai.Bad("logit_bias", "logit_bias has token %d, the model's are 0 to %d", b.Token,
				x.vocab-1)
		}
	}
	if r.Params.Stop == nil {
		r.Params.Stop = x.ends
	}
	name := "prompt"
	if r.Chat {
		name = "messages"
	}
	for i, ids := range r.Prompts {
		room := x.context - len(ids)
		most := min(defaultTexts, room)
		switch {
		case r.Most != nil:
			most = *r.Most
		case r.Chat || r.Fills:
			most = room
		}
		if len(ids) == 0 {
			return nil, openai.Bad(name, "%s: prompt %d has no tokens", name, i)
		}
		none := r.Most != nil && *r.Most == 0 // which needs no room
		if room < most || room < 1 && !none {
			return nil, &LengthError{name, len(ids), max(1, most), x.context, len(r.Images)}
		}
		a := &generate.Ask{Request: rollout.Request{Prompt: ids, Seeds: seeds(r.Seed, r.N)}, Params: r.Params,
			Ends: r.Ends, IgnoreEnds: r.IgnoreEnds, Scored: r.Scored, Prompted: r.Scored && r.Echo, Top: r.Top}
		if len(r.Images) > 0 {
			a.Done = held.release // of the only prompt
		}
		a.MaxNewTokens = max(1, most) // a prompt is scored before a token is drawn
		if a.MinNewTokens > a.MaxNewTokens {
			return nil, openai.Bad("min_tokens", "min_tokens is %d, and the answer has at most %d tokens: lower it, "+
				"or raise max_tokens", a.MinNewTokens, a.MaxNewTokens)
		}
		if err := x.engine.Check(a); err != nil {
			return nil, openai.Bad(name, "%v", strings.TrimPrefix(err.Error(), "generate: "))
		}
		list = append(list, a)
	}
	return list, nil
}

// LengthError says that a prompt and its answer are too long.
type LengthError struct {
	field                string // of the request
	Prompt, New, Context int    // tokens of the prompt, those asked for, and the most of both
	Images               int    // that the prompt shows
}

func (e *LengthError) Error() string {
	help := ""
	if e.Images > 0 {
		help = ", or make images smaller"
	}
	return fmt.Sprintf("%s has %d tokens, and %d are asked for: the endpoint reads at most %d together (exp endpoint "+
		"--context, or the model's positions); ask for less, or shorten %[1]s%[5]s", e.field, e.Prompt, e.New,
		e.Context, help)
}

// encode sets the prompts' tokens. Images are held in held.
func (x *Model) encode(r *openai.Request, held *holding) error {
	if !r.Chat {
		for _, ids := range r.Prompts {
			if i := slices.IndexFunc(ids, func(id int32) bool { return int(id) >= x.vocab }); i >= 0 {
				return openai.Bad("prompt", "the prompt has token %d, the model has 0 to %d", ids[i], x.vocab-1)
			}
		}
		for i, text := range r.Texts {
			ids, err := x.prompts.EncodeText(text)
			if err != nil {
				return openai.Bad("prompt", "prompt %d: %v", i, err)
			}
			r.Prompts = append(r.Prompts, ids)
		}
		return nil
	}
	if !x.prompts.Chats() {
		return openai.Bad("messages", "prompts are plain text: the model has no chat template, or its run used none. "+
			"Ask /v1/completions, or give one with --template FILE (--template auto takes the model's own)")
	}
	p := x.prompts
	if r.Vars != nil {
		var err error
		if p, err = p.WithVars(r.Vars); err != nil {
			return openai.Bad("chat_template_kwargs", "chat_template_kwargs: %v", err)
		}
	}
	list, err := openai.ForTemplate(r.Messages, x.inChannels())
	if err != nil {
		return openai.Bad("messages", "messages %v", err)
	}
	ids, err := p.EncodeChat(list, r.Tools, true, r.Images...)
	if err == nil && len(r.Images) > 0 && len(ids) < x.context { // else it is refused, and its images need no ids
		ids, err = p.Showing(held.hold).EncodeChat(list, r.Tools, true, r.Images...)
	}
	if err != nil {
		return openai.Bad("messages", "messages: %v", err)
	}
	r.Prompts = [][]int32{ids}
	return nil
}
