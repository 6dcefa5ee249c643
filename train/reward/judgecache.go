package reward

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// cachedAnswer is a file of the cache. The request is there for people, and to see
// that the file is the one that its name says.
type cachedAnswer struct {
	URL     string          `json:"url"`
	Request json.RawMessage `json:"request"`
	Answer  string          `json:"answer"`
}

// cachePath is where the answer to a request lies: by the SHA-256 of URL and body. The
// key is no part of it.
func (j *Judge) cachePath(body []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s", len(j.opt.URL), j.opt.URL)
	h.Write(body)
	name := hex.EncodeToString(h.Sum(nil))
	return filepath.Join(j.opt.Cache, name[:2], name[2:]+".json")
}

// cached returns the kept answer to a request. A file that cannot be read, or is that
// of another request, is no answer: it is asked again.
func (j *Judge) cached(body []byte) (string, bool) {
	if j.opt.Cache == "" {
		return "", false
	}
	raw, err := os.ReadFile(j.cachePath(body))
	if err != nil {
		return "", false
	}
	var a cachedAnswer
	if json.Unmarshal(raw, &a) != nil || a.URL != j.opt.URL || string(a.Request) != string(body) {
		return "", false
	}
	return a.Answer, true
}

// keep writes an answer to the cache: to a file of its own first, which then gets the
// name, so that no reader sees half of it.
func (j *Judge) keep(body []byte, answer string) error {
	if j.opt.Cache == "" {
		return nil
	}
	raw, err := json.Marshal(cachedAnswer{URL: j.opt.URL, Request: body, Answer: answer})
	if err != nil {
		return err
	}
	path := j.cachePath(body)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "answer-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}
