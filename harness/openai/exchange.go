package openai

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"exp/train/toolcall"
)

// Bounds of the bytes of a request, to models of text and to models of text and images.
const (
	MostBody      = 16 << 20
	MostImageBody = 64 << 20
)

// ReadBody reads the body of a request that samples, of so many bytes at most.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	// Pages of other sites can send forms, but no JSON.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, Bad("", "the header Content-Type must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, Coded(http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large",
			"the body has over %d MiB", most>>20)
	case err != nil:
		return nil, Bad("", "the body cannot be read: %v", err)
	}
	return body, nil
}

// WriteJSON writes an answer. Its error says that the client has gone.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer has a number that is not `+
			`finite: the model's weights are broken","type":"server_error","param":null,"code":"internal_error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(b, '\n'))
	return err
}

// NewID returns a name for an answer.
func NewID(chat bool) string {
	if chat {
		return "chatcmpl-" + rand.Text()
	}
	return "cmpl-" + rand.Text()
}

// Assistant returns the message of an answer, with the calls that it makes, and their ids.
func Assistant(text string, calls []toolcall.Call, id func(k int) string) map[string]any {
	m := map[string]any{"role": "assistant", "content": text, "refusal": nil}
	if len(calls) == 0 {
		return m
	}
	if text == "" {
		m["content"] = nil
	}
	list := make([]any, len(calls))
	for i, c := range calls {
		list[i] = Called(c, id(i))
	}
	m["tool_calls"] = list
	return m
}

// Called returns a call of an answer.
func Called(c toolcall.Call, id string) map[string]any {
	return map[string]any{"id": id, "type": "function",
		"function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)}}
}

// CallID returns the id of a call with a number, in the form that Mistral's chat templates want: 9 letters and digits.
func CallID(n int) string { return fmt.Sprintf("call%05d", n%100000) }
