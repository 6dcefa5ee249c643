package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/reports"
	"exp/reports/figure"
)

// page is the content of the frame.
type page struct {
	Title   string
	Section string // of the navigation: "runs", "curves", …
	Command string // of the command line, which shows the same; may be empty
	Body    any    // data of the template
	Use     string // the template
	Status  int    // of the answer; 0: 200

	// Set by the frame:
	Store string
	Self  string // the page's address
}

// view makes a page.
type view func(ctx context.Context, r *http.Request) (page, error)

// notice is the body of a page that has only a message.
type notice struct {
	Text string
	Pre  string // shown as it is; may be empty
	Hint string
}

// parse reads the templates. "body" executes the page's own.
func (s *Server) parse(tree fs.FS) (*template.Template, error) {
	t := template.New("page")
	t.Funcs(template.FuncMap{
		"body": func(p page) (template.HTML, error) {
			var out bytes.Buffer
			err := t.ExecuteTemplate(&out, p.Use+".tmpl", p.Body)
			return template.HTML(out.String()), err
		},
		"asset":   func(name string) string { return "/assets/" + name + "?v=" + s.files[name].tag },
		"clock":   clockText,
		"visible": reports.Visible,
		"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"age":     func(t time.Time) string { return quantity.Ago(s.clock(), t) },
	})
	return t.ParseFS(tree, "assets/*.tmpl")
}

// clockText is a time as people read it, in the time zone of the machine.
func clockText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// bounded limits the time to answer a request and the number that are answered at once.
func (s *Server) bounded(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTime)
		defer cancel()
		select {
		case s.making <- struct{}{}:
			defer func() { <-s.making }()
			answer(w, r.WithContext(ctx))
		case <-ctx.Done():
			refuse(w, http.StatusServiceUnavailable, "The server is busy with other pages.")
		}
	}
}

// show answers with the page of a view. An error becomes a page that explains it.
func (s *Server) show(v view) http.HandlerFunc {
	return s.bounded(func(w http.ResponseWriter, r *http.Request) {
		p, err := v(r.Context(), r)
		if err != nil {
			p = explain(r.Context(), err)
		}
		s.answer(w, r, p)
	})
}

// answer sends a page in its frame.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p page) {
	p.Store, p.Self = s.db.Dir(), r.URL.RequestURI()
	var out bytes.Buffer
	if err := s.templates.ExecuteTemplate(&out, "page.tmpl", p); err != nil {
		refuse(w, http.StatusInternalServerError, "The page cannot be shown: "+err.Error())
		return
	}
	send(w, r, cmp.Or(p.Status, http.StatusOK), "text/html; charset=utf-8", out.Bytes())
}

// send sends an answer, or says that the browser has it already.
func send(w http.ResponseWriter, r *http.Request, code int, kind string, content []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	if code == http.StatusOK {
		h.Set("Cache-Control", "private, no-cache")
		h.Set("ETag", `"`+tagOf(content)+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		return
	}
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		w.Write(content) // the browser may have left
	}
}

// tagOf identifies a content.
func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// explain makes the page of an error.
func explain(ctx context.Context, err error) page {
	p := page{Title: "Error", Use: "notice", Status: http.StatusInternalServerError}
	n := notice{Text: err.Error()}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		n.Hint = hinted.Hint()
	}
	var coded interface{ ExitCode() int }
	var syntax *query.SyntaxError
	var several *query.AmbiguousError
	switch {
	case errors.As(err, &syntax):
		p.Title, p.Status = "Filter", http.StatusBadRequest
		n = notice{Text: "The filter cannot be read.", Pre: syntax.Error()}
	case errors.As(err, &several):
		p.Title, p.Status = "Several runs", http.StatusNotFound
		n = notice{Text: "Several runs match.", Pre: several.Error(), Hint: several.Hint()}
	case errors.Is(err, store.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, figure.ErrNoData):
		p.Title, p.Status = "Not found", http.StatusNotFound
	case errors.Is(err, errRequest):
		p.Title, p.Status = "Bad request", http.StatusBadRequest
	case ctx.Err() != nil:
		p.Status, n.Text = http.StatusServiceUnavailable, "It took too long. Choose fewer runs."
	case errors.As(err, &coded) && coded.ExitCode() == 3:
		p.Title, p.Status = "Not found", http.StatusNotFound
	case errors.As(err, &coded) && coded.ExitCode() < 7:
		p.Title, p.Status = "Bad request", http.StatusBadRequest
	}
	p.Body = n
	return p
}

// errRequest marks an address that makes no sense.
var errRequest = errors.New("bad address")

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errRequest, fmt.Sprintf(format, args...))
}

func (s *Server) nowhere(context.Context, *http.Request) (page, error) {
	return page{Title: "Not found", Use: "notice", Status: http.StatusNotFound,
		Body: notice{Text: "This page does not exist."}}, nil
}

func (s *Server) helpPage(context.Context, *http.Request) (page, error) {
	return page{Title: "Help", Section: "help", Use: "help", Body: fieldHelp()}, nil
}

// file is a script or a style sheet.
type file struct {
	content []byte
	kind    string
	tag     string
}

func contentType(name string) string {
	return map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml"}[path.Ext(name)]
}

// sendFile sends a script or a style sheet. Its address changes with its content.
func (s *Server) sendFile(w http.ResponseWriter, r *http.Request) {
	f, ok := s.files[r.PathValue("file")]
	if !ok {
		refuse(w, http.StatusNotFound, "This file does not exist.")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}

// href is an address with values; pairs name and value replace values of q, and an empty
// one removes them.
func href(path string, q url.Values, pairs ...string) string {
	out := url.Values{}
	for k, v := range q {
		out[k] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			out.Del(pairs[i])
			continue
		}
		out.Set(pairs[i], pairs[i+1])
	}
	if len(out) == 0 {
		return path
	}
	return path + "?" + out.Encode()
}

// quoted is a word for a shell.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@:=,+~%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
