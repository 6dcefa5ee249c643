package serve

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	s := newSite(t, two(t))
	cookie := s.server.guard.cookie
	for _, tt := range []struct {
		name, method, path string
		head               http.Header
		code               int
	}{
		{"with the cookie", "GET", "/", nil, 200},
		{"by another name of this machine", "GET", "/", http.Header{"Host": {"localhost:9999"}}, 200},
		{"by its IPv6 address", "GET", "/", http.Header{"Host": {"[::1]:9999"}}, 200},
		{"by a name of another site", "GET", "/", http.Header{"Host": {"evil.example"}}, 421},
		{"by an address of the network", "GET", "/", http.Header{"Host": {"192.168.1.5:80"}}, 421},
		{"without the cookie", "GET", "/", http.Header{"Cookie": {"other=1"}}, 403},
		{"with another token in the cookie", "GET", "/", http.Header{"Cookie": {cookie + "=secrets"}}, 403},
		{"a script without the cookie", "GET", "/assets/live.js", http.Header{"Cookie": {"other=1"}}, 403},
		{"the stream without the cookie", "GET", "/changes", http.Header{"Cookie": {"other=1"}}, 403},
		{"with another token", "GET", "/?token=guess", nil, 403},
		{"a write", "POST", "/", nil, 405},
		{"another write", "DELETE", "/run/x", nil, 405},
	} {
		answer, body := s.do(tt.method, tt.path, tt.head)
		if answer.StatusCode != tt.code {
			t.Errorf("%s: %s, want %d\n%.200s", tt.name, answer.Status, tt.code, body)
		}
		h := answer.Header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != policy || h.Get("Referrer-Policy") == "" {
			t.Errorf("%s: headers %v", tt.name, h)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
	answer, _ := s.do("GET", "/report?sel=flow", nil)
	if p := answer.Header.Get("Content-Security-Policy"); strings.Contains(p, "unsafe") || !strings.Contains(p, "style-src 'sha256-") {
		t.Errorf("policy of a report: %s", p)
	}
}

// The first address opens the pages and loses its token on the way.
func TestAdmit(t *testing.T) {
	s := newSite(t, two(t))
	for path, want := range map[string]string{
		"/?token=secret":                   "/",
		"/curves?sel=flow&token=secret":    "/curves?sel=flow",
		"//evil.example/?token=secret":     "/evil.example/",
		"/%2f%2fevil.example?token=secret": "/%2f%2fevil.example",
	} {
		answer, _ := s.do("GET", path, http.Header{"Cookie": {"none=1"}})
		if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("%s leads to %q (%s), want %q", path, got, answer.Status, want)
		}
		c := answer.Cookies()
		if len(c) != 1 || c[0].Value != "secret" || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: cookies %v", path, c)
		}
	}
	a, err := newGuard("", false)
	b, err2 := newGuard("", false)
	if err != nil || err2 != nil || len(a.token) < 20 || a.token == b.token || a.cookie == b.cookie {
		t.Errorf("tokens %q and %q", a.token, b.token)
	}
}

func TestListen(t *testing.T) {
	var public *PublicError
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "example.com:80", "192.168.1.5:0"} {
		if _, err := Listen(address, false); !errors.As(err, &public) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"", "0", "127.0.0.1:0", "localhost:0"} {
		l, err := Listen(address, false)
		if err != nil {
			t.Errorf("%q: %v", address, err)
			continue
		}
		if !strings.HasPrefix(l.Addr().String(), "127.0.0.1:") && !strings.HasPrefix(l.Addr().String(), "[::1]:") {
			t.Errorf("%q listens on %s", address, l.Addr())
		}
		l.Close()
	}
	g := guard{public: true, name: "box"}
	for host, want := range map[string]bool{"192.168.1.5:80": true, "box:80": true, "localhost": true, "evil.example:80": false} {
		if g.knows(host) != want {
			t.Errorf("public server by the name %s: %t", host, !want)
		}
	}
}

// A request that could write something, as it has a body, is refused.
func TestBodyIsRefused(t *testing.T) {
	s := newSite(t, newStudy(t))
	for body, want := range map[string]int{"": http.StatusOK, "x": http.StatusRequestEntityTooLarge} {
		r := httptest.NewRequest("GET", "http://localhost/help", strings.NewReader(body))
		r.AddCookie(&http.Cookie{Name: s.server.guard.cookie, Value: "secret"})
		w := httptest.NewRecorder()
		if s.server.ServeHTTP(w, r); w.Code != want {
			t.Errorf("a body %q: %d, want %d", body, w.Code, want)
		}
	}
}
