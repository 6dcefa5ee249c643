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

// cachedAnswer is a cache file. It includes the request for people, and to verify that the
// file belongs to its name.
type cachedAnswer struct {
	URL     string          `json:"url"`
	Request json.RawMessage `json:"request"`
	Answer  string          `json:"answer"`
}

// cachePath returns the path of a request's answer, named by the SHA-256 of URL and body,
// without the key.
func (j *Judge) cachePath(body []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s", len(j.opt.URL), j.opt.URL)
	h.Write(body)
	name := hex.EncodeToString(h.Sum(nil))
	return filepath.Join(j.opt.Cache, name[:2], name[2:]+".json")
}

// cached returns the stored answer to a request. A file that is unreadable or belongs to
// another request counts as missing.
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

// keep writes an answer to the cache, by a temporary file and a rename, so that no reader
// sees half of it.
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
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
