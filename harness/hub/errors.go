package hub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answers of a hub, and problems with them.
var (
	// ErrRepoNotFound is returned when the hub has no such repository, or hides it.
	ErrRepoNotFound = errors.New("the hub has no such repository")
	// ErrRevisionNotFound is returned when the repository has no such revision.
	ErrRevisionNotFound = errors.New("the repository has no such revision")
	// ErrEntryNotFound is returned when the revision has no such file.
	ErrEntryNotFound = errors.New("the repository has no such file")
	// ErrGated is returned when a licence must be accepted first.
	ErrGated = errors.New("the repository is gated")
	// ErrDisabled is returned when the hub has closed the repository.
	ErrDisabled = errors.New("the hub has disabled the repository")
	// ErrToken is returned when the hub does not accept the token.
	ErrToken = errors.New("the hub refuses the token")
	// ErrOffline is returned when the network is needed and HF_HUB_OFFLINE forbids it.
	ErrOffline = errors.New("HF_HUB_OFFLINE is set")
	// ErrUnreachable is returned when the hub does not answer, or only with failures.
	ErrUnreachable = errors.New("the hub cannot be reached")
	// ErrContent is returned when a file's bytes are not the ones that the hub announced.
	ErrContent = errors.New("the bytes differ from the file's")
	// ErrPage is returned when a server sends a web page instead of a file.
	ErrPage = errors.New("the server sent a web page instead of the file")
)

// Exit codes of the program that the errors carry.
const (
	exitUsage     = 2
	exitNotFound  = 3
	exitIntegrity = 4
	exitResource  = 7
)

// Error is a failure with advice. It holds no token and no signed address.
type Error struct {
	What   string // "model Qwen/Qwen2.5-7B at main", "config.json of model …"
	Err    error
	Advice string // may be empty
	exit   int
}

func (e *Error) Error() string { return e.What + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *Error) Hint() string { return e.Advice }

// ExitCode is the program's exit code.
func (e *Error) ExitCode() int { return e.exit }

// transient is a failure that another try may overcome.
type transient struct {
	err   error
	after time.Duration // the wait that the server asked for; 0: none
}

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }

// failure turns an unexpected answer into an error about what. It reads and closes the body.
func (c *Client) failure(resp *http.Response, what string) error {
	const most = 2000 // bytes of a body that may explain the answer
	body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	resp.Body.Close()
	code, said := resp.Header.Get("X-Error-Code"), c.hide(resp.Header.Get("X-Error-Message"))
	fail := func(err error, exit int, advice string) error {
		if said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return &Error{What: what, Err: err, Advice: advice, exit: exit}
	}
	login := "set HF_TOKEN to a token of an account that may read it"
	if c.token != "" {
		login = "the token's account may not read it"
	}
	disabled := said == "Access to this resource is disabled."
	switch {
	case code == "RepoNotFound":
		return fail(ErrRepoNotFound, exitNotFound,
			"check the name and --dataset; a private repository looks like this too: "+login)
	case code == "RevisionNotFound":
		return fail(ErrRevisionNotFound, exitNotFound,
			"name another branch, tag or commit: REPO@REV; main is the usual branch")
	case code == "EntryNotFound":
		return fail(ErrEntryNotFound, exitNotFound, "check the file's path on the repository's page")
	case code == "GatedRepo":
		advice := "accept the licence on the repository's page, then set HF_TOKEN to a token of that account"
		if c.token != "" {
			advice = "accept the licence on the repository's page with the account of your token (HF_TOKEN)"
		}
		return fail(ErrGated, exitResource, advice)
	case code == "DisabledRepo", disabled:
		return fail(ErrDisabled, exitResource, "its page says why; use another copy or another model")
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusRequestTimeout,
		resp.StatusCode >= 500:
		return &transient{err: fail(fmt.Errorf("%w: it answers %s", ErrUnreachable, status(resp)), exitResource,
			"try again later: what was fetched is kept"), after: retryAfter(resp.Header.Get("Retry-After"), c.now())}
	case resp.StatusCode == http.StatusUnauthorized && c.token != "":
		return fail(ErrToken, exitResource, "make a new token in the hub's settings, and set HF_TOKEN")
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return fail(fmt.Errorf("the hub answers %s", status(resp)), exitResource, login)
	case resp.StatusCode == http.StatusNotFound:
		return fail(ErrEntryNotFound, exitNotFound, "check the name, --dataset, the revision and HF_ENDPOINT")
	case isPage(resp.Header.Get("Content-Type"), body):
		return c.page(what)
	}
	return fail(fmt.Errorf("the hub answers %s", status(resp)), exitResource, "")
}

// page is the error about a web page in place of a file.
func (c *Client) page(what string) error {
	return &Error{What: what, Err: ErrPage, exit: exitResource,
		Advice: "something between here and the hub wants a login, or HF_ENDPOINT is not a hub's address; it is " +
			c.Settings.Endpoint()}
}

func status(resp *http.Response) string {
	return strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
}

// retryAfter reads the header Retry-After: seconds or a date; 0 without one.
func retryAfter(value string, now time.Time) time.Duration {
	if s, err := strconv.Atoi(value); err == nil && s > 0 {
		return time.Duration(min(s, 1<<20)) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// isPage reports whether an answer is a web page.
func isPage(contentType string, head []byte) bool {
	return strings.HasPrefix(contentType, "text/html") || looksLikePage(head)
}

// looksLikePage reports whether bytes begin like a web page.
func looksLikePage(head []byte) bool {
	text := strings.TrimPrefix(string(head[:min(len(head), 256)]), "\ufeff")
	text = strings.ToLower(strings.TrimLeft(text, " \t\r\n"))
	return strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}

// hide removes the token from a text that a server sent.
func (c *Client) hide(text string) string {
	if c.token == "" {
		return text
	}
	return strings.ReplaceAll(text, string(c.token), c.token.String())
}
