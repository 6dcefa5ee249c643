package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// publicHub is the endpoint if HF_ENDPOINT names none.
const publicHub = "https://huggingface.co"

// Settings name the hub and the cache, from the variables that Python's library reads too.
type Settings struct {
	Cache     Cache
	Offline   bool   // HF_HUB_OFFLINE: use no network at all
	endpoint  string // HF_ENDPOINT
	token     secret // HF_TOKEN
	tokenPath string // HF_TOKEN_PATH
}

// secret is a text that is never printed.
type secret string

// String hides the text.
func (secret) String() string { return "[token]" }

// GoString hides the text.
func (secret) GoString() string { return "[token]" }

// FromEnv reads the settings. Cache.Dir is empty if no home folder is known.
func FromEnv(getenv func(string) string) Settings {
	home := getenv("HF_HOME")
	if home == "" {
		switch cache, user := getenv("XDG_CACHE_HOME"), getenv("HOME"); {
		case cache != "":
			home = filepath.Join(cache, "huggingface")
		case user != "":
			home = filepath.Join(user, ".cache", "huggingface")
		}
	}
	expand := func(path string) string {
		if rest, ok := strings.CutPrefix(path, "~/"); ok && getenv("HOME") != "" {
			return filepath.Join(getenv("HOME"), rest)
		}
		return path
	}
	s := Settings{endpoint: getenv("HF_ENDPOINT"), token: secret(strings.TrimSpace(getenv("HF_TOKEN"))),
		tokenPath: expand(getenv("HF_TOKEN_PATH"))}
	if s.endpoint == "" {
		s.endpoint = publicHub
	}
	home = expand(home)
	if s.Cache.Dir = expand(getenv("HF_HUB_CACHE")); s.Cache.Dir == "" && home != "" {
		s.Cache.Dir = filepath.Join(home, "hub")
	}
	if s.tokenPath == "" && home != "" {
		s.tokenPath = filepath.Join(home, "token")
	}
	switch strings.ToUpper(getenv("HF_HUB_OFFLINE")) {
	case "1", "ON", "YES", "TRUE":
		s.Offline = true
	}
	return s
}

// Endpoint returns the address of the hub, without a password.
func (s Settings) Endpoint() string {
	u, err := s.url()
	if err != nil {
		return ""
	}
	return publicURL(u)
}

// publicURL returns an address without its parts that may be secret: user, query and fragment.
func publicURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (s Settings) url() (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(s.endpoint, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &Error{What: "HF_ENDPOINT", exit: exitUsage,
			Err: errors.New("is not an address such as https://hf-mirror.example")}
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// readToken returns the token, or "".
func (s Settings) readToken() (secret, error) {
	if s.token != "" || s.tokenPath == "" {
		return s.token, nil
	}
	b, err := os.ReadFile(s.tokenPath)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the hub's token: %w", err)
	}
	return secret(strings.NewReplacer("\r", "", "\n", "").Replace(strings.TrimSpace(string(b)))), nil
}
