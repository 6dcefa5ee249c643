package openai

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
)

// MostBody bounds the bytes of a request.
const MostBody = 16 << 20

// ReadBody reads the body of a request that samples.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// Pages of other sites can send forms, but no JSON.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, Bad("", "the header Content-Type must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MostBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, Coded(http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large",
			"the body has over %d MiB", MostBody>>20)
	case err != nil:
		return nil, Bad("", "the body cannot be read: %v", err)
	}
	return body, nil
}

// WriteJSON writes an answer; a client that has gone learns nothing.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer has a number that is not `+
			`finite: the model's weights are broken","type":"server_error","param":null,"code":"internal_error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// NewID returns a name for an answer.
func NewID(chat bool) string {
	if chat {
		return "chatcmpl-" + rand.Text()
	}
	return "cmpl-" + rand.Text()
}
