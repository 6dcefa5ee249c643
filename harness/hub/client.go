package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Client fetches from a hub into a cache. Its fields may be set before the first use.
type Client struct {
	Settings Settings
	Cache    Cache
	// Watch receives the progress of a Get; nil: nobody does. Calls never overlap.
	Watch func(Progress)
	// Note receives messages for a person: a wait, a second try; nil: nobody does.
	Note func(text string)

	base  *url.URL
	token secret
	http  *http.Client
	// The clock and the file system; tests replace them.
	now      func() time.Time
	sleep    func(ctx context.Context, d time.Duration) error
	stall    time.Duration // the longest silence within an answer
	symlink  func(target, path string) error
	hardlink func(target, path string) error
}

// Progress is the state of a Get, in bytes of the files to fetch.
type Progress struct {
	Done, Total int64
}

// NewClient prepares a client. It reads the token and uses no network yet.
func NewClient(s Settings) (*Client, error) {
	if s.Offline {
		return nil, &Error{What: "the hub", Err: ErrOffline, Advice: "unset it, or use what the cache has: exp hub ls",
			exit: exitResource}
	}
	if s.Cache.Dir == "" {
		return nil, &Error{What: "the hub's cache", Err: errors.New("no folder is known"),
			Advice: "set HF_HUB_CACHE or HF_HOME", exit: exitUsage}
	}
	base, err := s.url()
	if err != nil {
		return nil, err
	}
	token, err := s.readToken()
	if err != nil {
		return nil, err
	}
	// Small answers of a hub come within a second, and a queue of a minute is possible.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.DisableCompression = time.Minute, true
	return &Client{Settings: s, Cache: s.Cache, base: base, token: token, now: time.Now, sleep: wait,
		stall: time.Minute, symlink: os.Symlink, hardlink: os.Link,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxRedirects is about as many as browsers follow.
const maxRedirects = 10

// send asks a server and follows redirects until stop accepts an answer. The token goes only to the
// hub: a redirect to another host leaves it out.
func (c *Client) send(ctx context.Context, method string, u *url.URL, header http.Header,
	stop func(*http.Response) bool) (*http.Response, error) {
	trusted := sameHost(u, c.base)
	for range maxRedirects {
		req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", publicURL(u), bare(err))
		}
		req.Header = header.Clone()
		req.Header.Set("User-Agent", "exp")
		if trusted && c.token != "" {
			req.Header.Set("Authorization", "Bearer "+string(c.token))
		}
		resp, err := c.do(req)
		if err != nil {
			return nil, c.unreachable(ctx, u, err)
		}
		if !redirects(resp) || stop != nil && stop(resp) {
			return resp, nil
		}
		resp.Body.Close()
		next, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || next.Scheme != "http" && next.Scheme != "https" {
			return nil, c.lost(u, "it redirects to no address")
		}
		trusted = trusted && sameHost(next, c.base)
		u = next
	}
	return nil, c.lost(u, fmt.Sprintf("it redirects more than %d times", maxRedirects))
}

// lost is the error of a redirect that leads nowhere.
func (c *Client) lost(u *url.URL, why string) error {
	return &Error{What: publicURL(&url.URL{Scheme: u.Scheme, Host: u.Host}), exit: exitResource,
		Err: fmt.Errorf("%w: %s", ErrUnreachable, why), Advice: "check HF_ENDPOINT; it is " + c.Settings.Endpoint()}
}

// do sends a request. The body of its answer fails once it has been silent for too long.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := c.http.Do(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &watched{body: resp.Body, stop: cancel, limit: c.stall}
	return resp, nil
}

// watched is a body that must not stay silent.
type watched struct {
	body  io.ReadCloser
	stop  context.CancelFunc
	limit time.Duration
}

func (w *watched) Read(b []byte) (int, error) {
	t := time.AfterFunc(w.limit, w.stop)
	n, err := w.body.Read(b)
	if !t.Stop() && err != nil && err != io.EOF {
		err = fmt.Errorf("no byte came for %v", w.limit)
	}
	return n, err
}

func (w *watched) Close() error {
	defer w.stop()
	return w.body.Close()
}

func redirects(resp *http.Response) bool {
	return slices.Contains([]int{301, 302, 303, 307, 308}, resp.StatusCode) && resp.Header.Get("Location") != ""
}

// sameHost reports whether two addresses have the same server.
func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// unreachable is the error of a request without an answer. It does not repeat the address,
// which may be signed.
func (c *Client) unreachable(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &Error{What: publicURL(&url.URL{Scheme: u.Scheme, Host: u.Host}), exit: exitResource,
		Err:    fmt.Errorf("%w: %s", ErrUnreachable, c.hide(bare(err).Error())),
		Advice: "check the network, HTTPS_PROXY and HF_ENDPOINT; what was fetched is kept"}
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return e // a wrong name or no network: waiting does not help
	}
	return &transient{err: e}
}

// bare removes the address from an error of net/http.
func bare(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// api returns the address of a question about a repository.
func (c *Client) api(r Repo, parts ...string) *url.URL {
	return c.base.JoinPath(append([]string{"api", r.plural(), r.Name}, parts...)...)
}

// ask decodes the JSON answer to a question about what.
func (c *Client) ask(ctx context.Context, u *url.URL, what string, v any) (next string, err error) {
	const most = 256 << 20 // a tree of a million files
	err = c.retry(ctx, func() error {
		resp, err := c.send(ctx, http.MethodGet, u, http.Header{"Accept": {"application/json"}}, nil)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return c.failure(resp, what)
		}
		defer resp.Body.Close()
		next = resp.Header.Get("Link")
		b, err := io.ReadAll(io.LimitReader(resp.Body, most))
		if err != nil {
			return c.unreachable(ctx, u, err)
		}
		if err := json.Unmarshal(b, v); err != nil {
			if isPage(resp.Header.Get("Content-Type"), b) {
				return c.page(what)
			}
			return &Error{What: what, Err: fmt.Errorf("the hub's answer cannot be read: %w", err), exit: exitResource}
		}
		return nil
	})
	return next, err
}

// Tries after a failure that may pass. Pauses double from the first; longer ones than longestPause
// end the tries.
const (
	retries      = 5
	firstPause   = time.Second
	longestPause = 10 * time.Minute
)

// retry calls f again after a failure that may pass. Progress of f resets the count: a connection
// that breaks every gigabyte can still fetch a large file.
func (c *Client) retry(ctx context.Context, f func() error) error {
	pause := firstPause
	for failures := 0; ; {
		err := f()
		var t *transient
		if !errors.As(err, &t) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var p *partial
		if errors.As(err, &p) && p.bytes > 0 {
			failures, pause = 0, firstPause
		}
		if failures++; failures > retries || t.after > longestPause {
			return t.err
		}
		d := max(pause, t.after)
		c.note("%v; trying again in %v", t.err, d)
		if err := c.sleep(ctx, d); err != nil {
			return err
		}
		pause *= 2
	}
}

func (c *Client) note(format string, args ...any) {
	if c.Note != nil {
		c.Note(fmt.Sprintf(format, args...))
	}
}

// temporarySuffix ends the name of a file that is renamed when it is complete.
func temporarySuffix() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // which never fails
	return ".tmp-" + hex.EncodeToString(b)
}
