package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"exp/harness/openai"
	"exp/train/rollout"
)

// handler answers requests to the addresses of open episodes.
func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	ask := func(chat bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, chat) }
	}
	mux.HandleFunc("POST /episode/{key}/v1/chat/completions", ask(true))
	mux.HandleFunc("POST /episode/{key}/v1/completions", ask(false))
	mux.HandleFunc("GET /episode/{key}/v1/models", func(w http.ResponseWriter, r *http.Request) {
		x := a.episodeOf(r)
		if x == nil {
			refuse(w, errOver)
			return
		}
		card := map[string]any{"id": model, "object": "model", "created": 0, "owned_by": "exp",
			"max_model_len": a.o.MaxPrompt + x.e.Params.MaxNewTokens}
		_ = openai.WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{card}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, openai.Coded(http.StatusNotFound, "invalid_request_error", "not_found", "unknown request %s %s: an "+
			"episode has POST chat/completions, POST completions and GET models behind its base_url", r.Method,
			r.URL.Path))
	})
	return mux
}

// episodeOf returns the open episode that a request is for, or nil.
func (a *Agent) episodeOf(r *http.Request) *episode {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[r.PathValue("key")]
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	var e *openai.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled):
		e = errOver
	default:
		e = openai.Coded(http.StatusInternalServerError, "server_error", "internal_error", "%v", err)
	}
	_ = openai.WriteJSON(w, e.Status, map[string]any{"error": e})
}

// answer answers a request for a turn.
func (a *Agent) answer(w http.ResponseWriter, r *http.Request, chat bool) {
	x := a.episodeOf(r)
	if x == nil {
		refuse(w, errOver)
		return
	}
	defer x.hears()()
	req, s, out, err := a.turn(w, r, x, chat)
	x.refused.Store(&err)
	if err != nil {
		refuse(w, err)
		return
	}
	if write(w, req, out) != nil {
		s.undo(out)
	}
}

// turn reads a request of an episode and asks the policy.
func (a *Agent) turn(w http.ResponseWriter, r *http.Request, x *episode, chat bool) (*openai.Request, *strand, *answer,
	error) {
	body, err := openai.ReadBody(w, r, a.bodyLimit())
	if err != nil {
		return nil, nil, nil, err
	}
	// What a request says of sampling is read, so that mistakes show, and not used, except its form: the run says how.
	req, err := openai.Read(body, chat, rollout.Params{}, x.images())
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := x.strand(req.Conversation)
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := s.ask(r.Context(), req)
	return req, s, out, err
}

// write writes an answer. Nothing in it depends on the time.
func write(w http.ResponseWriter, r *openai.Request, a *answer) error {
	id, kind := fmt.Sprintf("cmpl-%d", a.turn), "text_completion"
	choice := map[string]any{"index": 0, "finish_reason": a.finish, "logprobs": nil}
	if r.Chat {
		id, kind = "chat"+id, "chat.completion"
		choice["message"] = openai.Assistant(a.text, a.calls, func(k int) string { return openai.CallID(a.first + k) })
	} else {
		choice["text"] = a.text
	}
	object := func(kind string, choices ...any) map[string]any {
		return map[string]any{"id": id, "object": kind, "created": 0, "model": model, "choices": choices}
	}
	usage := map[string]any{"prompt_tokens": a.prompt, "completion_tokens": a.tokens,
		"total_tokens": a.prompt + a.tokens}
	if !r.Stream {
		o := object(kind, choice)
		o["usage"] = usage
		return openai.WriteJSON(w, http.StatusOK, o)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	var list []any
	if r.Chat {
		kind += ".chunk"
		delta := choice["message"].(map[string]any)
		delete(choice, "message")
		if calls, ok := delta["tool_calls"].([]any); ok {
			for i, c := range calls {
				c.(map[string]any)["index"] = i
			}
		}
		choice["delta"] = map[string]any{}
		list = append(list, object(kind, map[string]any{"index": 0, "delta": delta, "finish_reason": nil}))
	}
	list = append(list, object(kind, choice))
	if r.Usage {
		o := object(kind)
		o["choices"], o["usage"] = []any{}, usage
		list = append(list, o)
	}
	for _, v := range list {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", b)
		}
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, "data: [DONE]\n\n")
	return err
}
