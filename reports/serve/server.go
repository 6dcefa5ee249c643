package serve

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
)

//go:embed assets
var assets embed.FS

// Limits of the server. A page takes milliseconds, a report a few seconds; whoever waits
// longer has asked for too much.
const (
	pageTime    = 60 * time.Second // to make a page
	headTime    = 5 * time.Second  // to send a request
	idleTime    = 2 * time.Minute  // between requests
	stopTime    = 2 * time.Second  // for requests to end when the server stops
	watchEvery  = 500 * time.Millisecond
	mostHead    = 32 << 10 // bytes of a request's head, its address included
	mostPages   = 3        // made at once, fewer than the store has connections
	mostWatches = 64       // open pages that are told of changes
)

// Options configures a Server.
type Options struct {
	DB    *store.DB
	Token string           // that opens the pages; empty: a random one
	Clock func() time.Time // nil: time.Now
	// Public admits requests that name the server by an address or a name of this machine
	// instead of localhost.
	Public bool
}

// Server is an http.Handler for the pages of a store.
type Server struct {
	db        *store.DB
	clock     func() time.Time
	guard     guard
	mux       *http.ServeMux
	templates *template.Template
	files     map[string]file // by path: scripts and style sheets
	making    chan struct{}   // holds a token per page being made
	reporting chan struct{}   // holds a token while a report is made
	changes   changes
	spans     spanCache
	stages    stageCache
}

// New makes a server.
func New(o Options) (*Server, error) {
	g, err := newGuard(o.Token, o.Public)
	if err != nil {
		return nil, err
	}
	s := &Server{db: o.DB, clock: o.Clock, guard: g, mux: http.NewServeMux(), making: make(chan struct{}, mostPages),
		reporting: make(chan struct{}, 1),
		changes:   changes{listeners: map[chan struct{}]bool{}}}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.files, err = readFiles(assets); err != nil {
		return nil, err
	}
	if s.templates, err = s.parse(assets); err != nil {
		return nil, err
	}
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	for path, v := range map[string]view{
		"/{$}":                   s.runsPage,
		"/run/{run}":             s.runPage,
		"/run/{run}/completions": s.completionsPage,
		"/run/{run}/lineage":     s.lineagePage,
		"/curves":                s.curvesPage,
		"/problems":              s.problemsPage,
		"/benchmarks":            s.benchmarksPage,
		"/compare":               s.comparePage,
		"/help":                  s.helpPage,
		"/":                      s.nowhere,
	} {
		s.mux.HandleFunc(path, s.show(v))
	}
	s.mux.HandleFunc("/report", s.bounded(s.sendReport))
	s.mux.HandleFunc("/points", s.bounded(s.sendPoints))
	s.mux.HandleFunc("/run/{run}/image/{digest}", s.bounded(s.sendImage))
	s.mux.HandleFunc("/changes", s.sendChanges)
	s.mux.HandleFunc("/assets/{file}", s.sendFile)
}

// ServeHTTP answers a request that the guard lets pass.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.guard.pass(w, r) {
		s.mux.ServeHTTP(w, r)
	}
}

// Address returns the address to open in a browser, with the token.
func (s *Server) Address(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return l.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/?token=" + s.guard.token
}

// Serve answers requests until ctx ends, and closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: s, ReadHeaderTimeout: headTime, WriteTimeout: 2 * pageTime,
		IdleTimeout: idleTime, MaxHeaderBytes: mostHead,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	var group sync.WaitGroup
	var watching error
	group.Go(func() {
		watching = s.db.Watch(ctx, watchEvery, s.changes.tell)
	})
	group.Go(func() {
		<-ctx.Done()
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer done()
		if server.Shutdown(closing) != nil {
			server.Close()
		}
	})
	err := server.Serve(l)
	cancel()
	group.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, watching)
}

// Listen opens the address that browsers use: a port of this machine, or HOST:PORT, which
// must be this machine's loopback unless public is set. "" is any free port.
func Listen(address string, public bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil { // no colon
		host, port = "", address
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "0"
	}
	if ip := net.ParseIP(host); !public && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &PublicError{Host: host}
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// PublicError reports an address that other machines could reach.
type PublicError struct{ Host string }

func (e *PublicError) Error() string {
	return fmt.Sprintf("other machines could reach %s", e.Host)
}

// Hint says how to allow it, and names a safer way.
func (e *PublicError) Hint() string {
	return "--public allows it, without encryption; ssh -L 8080:127.0.0.1:PORT is safer"
}

// ExitCode returns the code for bad usage.
func (e *PublicError) ExitCode() int { return 2 }

// finder finds runs; ages count back from now.
func (s *Server) finder() query.Finder {
	return query.Finder{DB: s.db, Now: s.clock(), Lower: metric.Lower, Schema: config.Fields()}
}

// readFiles reads the scripts and style sheets.
func readFiles(tree fs.FS) (map[string]file, error) {
	files := map[string]file{}
	list, err := fs.ReadDir(tree, "assets")
	if err != nil {
		return nil, err
	}
	for _, entry := range list {
		kind := contentType(entry.Name())
		if kind == "" {
			continue
		}
		content, err := fs.ReadFile(tree, "assets/"+entry.Name())
		if err != nil {
			return nil, err
		}
		files[entry.Name()] = file{content: content, kind: kind, tag: tagOf(content)}
	}
	return files, nil
}
