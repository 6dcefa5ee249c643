package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"strings"
)

// guard lets requests pass that come from who started the server. Other programs on the
// machine, and pages of other sites in the same browser, do not know the token. The token
// comes with the first address and stays in a cookie.
type guard struct {
	token  string
	cookie string // its name, which tells servers of one machine apart
	public bool
	name   string // of this machine
}

func newGuard(token string, public bool) (guard, error) {
	if token == "" {
		token = rand.Text()
	}
	sum := sha256.Sum256([]byte(token))
	g := guard{token: token, cookie: "exp-" + hex.EncodeToString(sum[:4]), public: public}
	if public {
		var err error
		if g.name, err = os.Hostname(); err != nil {
			return g, err
		}
	}
	return g, nil
}

// policy allows what our own files do: no inline script or style, nothing from other
// hosts, no frame around a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// pass sets the headers of every answer and reports whether the request may go on; if
// not, it has been answered.
func (g guard) pass(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !g.knows(r.Host):
		refuse(w, http.StatusMisdirectedRequest, "This server does not go by the name "+r.Host+". Open the address "+
			"that exp serve printed.")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "These pages can only be read.")
	case r.ContentLength != 0:
		refuse(w, http.StatusRequestEntityTooLarge, "A request to read has no body.")
	case r.URL.Query().Has("token"):
		g.admit(w, r)
	case !g.admitted(r):
		refuse(w, http.StatusForbidden, "Open the address that exp serve printed: it has a token that this one lacks.")
	default:
		return true
	}
	return false
}

func refuse(w http.ResponseWriter, code int, text string) { http.Error(w, text, code) }

// knows reports whether a request names this server. A name of another site that leads
// here is an attack (DNS rebinding): its scripts could read the answer.
func (g guard) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if ip := net.ParseIP(name); ip != nil {
		return ip.IsLoopback() || g.public
	}
	return name == "localhost" || g.public && name == g.name
}

// admit answers the first request: it moves the token from the address to a cookie.
func (g guard) admit(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !g.same(q.Get("token")) {
		refuse(w, http.StatusForbidden, "The token is another server's. Open the address that exp serve printed last.")
		return
	}
	q.Del("token")
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	// A path that begins with two slashes would lead to another host.
	to := "/" + strings.TrimLeft(r.URL.EscapedPath(), "/")
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (g guard) admitted(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && g.same(c.Value)
}

func (g guard) same(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}
