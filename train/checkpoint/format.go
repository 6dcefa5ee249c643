package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	magic        = "exp/checkpoint"
	version      = 1
	manifestName = "manifest.json"
	// maxManifest bounds the manifest: the caller's state is a few counters and
	// random-stream positions, not bulk data.
	maxManifest = 64 << 20
)

// manifest is the content of manifest.json; the package comment explains its fields.
type manifest struct {
	Magic   string          `json:"magic"`
	Version int             `json:"version"`
	Step    int             `json:"step"`
	State   json.RawMessage `json:"state"`
	Files   []manifestFile  `json:"files"`
	Digest  string          `json:"digest"`
}

type manifestFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // 64 hexadecimal digits
}

// render returns the bytes of manifest.json with the digest filled in.
func (m manifest) render() ([]byte, error) {
	m.Digest = ""
	plain, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(plain)
	m.Digest = hex.EncodeToString(sum[:])
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

// parseManifest reads manifest.json. It accepts only the exact bytes that render writes.
func parseManifest(path string, raw []byte) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, corrupt(path, "", "%v", err)
	}
	if m.Magic != magic {
		return m, corrupt(path, "", "magic is %q, want %q", m.Magic, magic)
	}
	if m.Version > version {
		return m, &Error{Op: "read", Path: path, Err: fmt.Errorf("format version %d, this program reads up to %d: %w",
			m.Version, version, ErrNewer),
			Hint: "use the version of the program that wrote it"}
	}
	if m.Version < 1 || m.Step < 0 {
		return m, corrupt(path, "", "version %d, step %d", m.Version, m.Step)
	}
	want, err := m.render()
	if err != nil || !bytes.Equal(raw, want) {
		return m, corrupt(path, "", "not as written: digest or layout differ")
	}
	for _, f := range m.Files {
		if f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) || f.Bytes < 0 || len(f.SHA256) != 64 {
			return m, corrupt(path, "", "file %q of %d bytes", f.Name, f.Bytes)
		}
	}
	return m, nil
}

// stepDir returns the name of a checkpoint's directory. Names sort like steps up to
// 99,999,999.
func stepDir(step int) string { return fmt.Sprintf("step-%08d", step) }

// stepOf is the inverse of stepDir.
func stepOf(name string) (step int, ok bool) {
	digits, found := strings.CutPrefix(name, "step-")
	step, err := strconv.Atoi(digits)
	return step, found && err == nil && step >= 0 && name == stepDir(step)
}
