package endpoint

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"exp/harness/openai"
	"exp/train/toolcall"
)

// Limits of the server.
const (
	mostHead = 32 << 10
	headTime = 5 * time.Second
	bodyTime = time.Minute
	stopTime = 2 * time.Second // for answers to be written when the server stops
)

// Options configure a Server.
type Options struct {
	Key string // that clients must send; empty: none
	// ToolFormat is how answers write calls of tools, one of ToolFormats; empty: as Model.ToolFormat says.
	ToolFormat string
	Public     bool             // requests may name the server by addresses that other machines reach
	Clock      func() time.Time // of answers
	Log        func(line string)
	// Grace is the time that requests get to end when the server stops. Waits is told how many it waits for.
	Grace time.Duration
	Waits func(open int)
}

// Server is an http.Handler that asks a model.
type Server struct {
	x     *Model
	o     Options
	calls toolcall.Syntax // without a name: requests with tools are refused
	shown bool            // the chat template shows tools
	// name of this machine
	name string
	mux  *http.ServeMux
	gate gate
}

// NewServer makes a server. It panics if the name of a format is unknown.
func NewServer(x *Model, o Options) *Server {
	s := &Server{x: x, o: o, mux: http.NewServeMux(), gate: gate{idle: make(chan struct{})}}
	if o.Public {
		s.name, _ = os.Hostname() // without it addresses still work
	}
	if name := cmp.Or(o.ToolFormat, x.ToolFormat()); name != "" {
		var err error
		if s.calls, err = toolcall.SyntaxNamed(name); err != nil {
			panic("endpoint: " + err.Error())
		}
	}
	s.shown = x.ShowsTools()
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /v1/models/{name...}", s.model)
	sample := func(chat bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, chat) }
	}
	s.mux.HandleFunc("POST /v1/chat/completions", sample(true))
	s.mux.HandleFunc("POST /v1/completions", sample(false))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, openai.Coded(http.StatusNotFound, "invalid_request_error", "not_found", "unknown request %s "+
			"%s: the endpoint has GET /v1/models, POST /v1/chat/completions and POST /v1/completions", r.Method,
			r.URL.Path))
	})
	return s
}

// Serve answers requests until ctx ends, and closes l. It then refuses requests, gives those that are being answered
// Options.Grace to end, and stops the model.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: headTime, ReadTimeout: bodyTime, MaxHeaderBytes: mostHead}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			s.drain()
		case <-s.x.ended:
		}
		s.x.Stop()
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer done()
		if server.Shutdown(closing) != nil {
			server.Close()
		}
	}()
	err := server.Serve(l)
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return s.x.failed
}

// drain refuses further requests and waits for those that are being answered.
func (s *Server) drain() {
	if open := s.gate.close(); open > 0 && s.o.Waits != nil {
		s.o.Waits(open)
	}
	limit := time.NewTimer(s.o.Grace)
	defer limit.Stop()
	select {
	case <-s.gate.idle:
	case <-limit.C:
	case <-s.x.ended:
	}
}

// gate counts the requests that are being answered, and lets no more in once it is closed.
type gate struct {
	mu     sync.Mutex
	open   int
	closed bool
	idle   chan struct{} // closed when it is closed and no request is left
}

// enter counts a request, unless the gate is closed.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.open++
	}
	return !g.closed
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open--; g.open == 0 && g.closed {
		close(g.idle)
	}
}

// close lets no more requests in, and returns how many are being answered. It is called once.
func (g *gate) close() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed = true; g.open == 0 {
		close(g.idle)
	}
	return g.open
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case !s.knows(r.Host):
		s.refuse(w, r, openai.Coded(http.StatusMisdirectedRequest, "invalid_request_error", "wrong_host",
			"this server does not go by the name %s: use the address that exp endpoint printed", r.Host))
	case s.o.Key != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")),
		[]byte("Bearer "+s.o.Key)) != 1:
		s.refuse(w, r, openai.Coded(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key",
			"the API key is missing or wrong: send Authorization: Bearer KEY, with the key of exp endpoint"))
	case !s.gate.enter():
		s.refuse(w, r, errStopped)
	default:
		defer s.gate.leave()
		s.mux.ServeHTTP(w, r)
	}
}

// knows reports whether a request names this server. A name of another site that leads here is an attack (DNS
// rebinding): its scripts could read the answer.
func (s *Server) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if ip := net.ParseIP(name); ip != nil {
		return ip.IsLoopback() || s.o.Public
	}
	return name == "localhost" || s.o.Public && name == s.name || s.o.Key != ""
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := asAPI(err)
	if e.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	s.log("%s %s: %d %s", r.Method, r.URL.Path, e.Status, e.Message)
	_ = openai.WriteJSON(w, e.Status, map[string]any{"error": e})
}

// asAPI returns an error as clients read it.
func asAPI(err error) *openai.Error {
	var e *openai.Error
	var long *LengthError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &long):
		e = openai.Coded(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "%v", long)
		e.Param = &long.field
		return e
	case errors.Is(err, errBusy):
		return openai.Coded(http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded",
			"%v: ask again when some have ended, or ask for fewer at once", err)
	case errors.Is(err, errStopped), errors.Is(err, context.Canceled):
		return openai.Coded(http.StatusServiceUnavailable, "server_error", "stopping", "%v", errStopped)
	}
	return openai.Coded(http.StatusInternalServerError, "server_error", "internal_error", "%v", err)
}

func (s *Server) log(format string, args ...any) {
	if s.o.Log != nil {
		s.o.Log(fmt.Sprintf(format, args...))
	}
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	_ = openai.WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{s.card()}})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("name"); name != s.x.name {
		s.refuse(w, r, s.noModel(name))
		return
	}
	_ = openai.WriteJSON(w, http.StatusOK, s.card())
}

// card describes the model.
func (s *Server) card() any {
	return map[string]any{"id": s.x.name, "object": "model", "created": s.o.Clock().Unix(), "owned_by": "exp",
		"max_model_len": s.x.context}
}

func (s *Server) noModel(name string) error {
	e := openai.Coded(http.StatusNotFound, "invalid_request_error", "model_not_found",
		"model %q does not exist: the endpoint has %q", name, s.x.name)
	param := "model"
	e.Param = &param
	return e
}

// read reads the body of a request to sample.
func (s *Server) read(w http.ResponseWriter, r *http.Request, chat bool) (*openai.Request, error) {
	body, err := openai.ReadBody(w, r, s.x.bodyLimit())
	if err != nil {
		return nil, err
	}
	req, err := openai.Read(body, chat, s.x.params, s.x.images())
	if err == nil && req.Model != "" && req.Model != s.x.name {
		err = s.noModel(req.Model)
	}
	if err == nil {
		err = s.checkTools(req)
	}
	return req, err
}

// answer samples and writes what a request asks for.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, chat bool) {
	begin := s.o.Clock()
	req, err := s.read(w, r, chat)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	asks, err := s.x.asksFor(req)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	calls, err := s.callerOf(req, asks)
	if err == nil {
		err = s.restrict(req, asks)
	}
	if err != nil {
		abandon(asks)
		s.refuse(w, r, err)
		return
	}
	running, err := s.x.ask(r.Context(), asks)
	if running != nil {
		defer running.close()
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	a := &answer{Server: s, Request: req, sampled: running, caller: calls, id: openai.NewID(chat),
		created: begin.Unix()}
	if req.Stream {
		err = a.stream(r.Context(), w)
	} else if err = a.whole(r.Context(), w); err != nil {
		s.refuse(w, r, err)
	}
	u := a.counts()
	s.log("%s: %d prompt tokens, %d new ones, %.2f s%s", r.URL.Path, u.Prompt, u.Completion,
		s.o.Clock().Sub(begin).Seconds(), map[bool]string{true: ", ended early"}[err != nil])
}
