package checkpoint

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"exp/kernels"
)

// State is the content of a training checkpoint.
type State struct {
	Step   int             // training steps done
	Extra  json.RawMessage // the caller's own state, small; nil for null
	Groups []Group
	Linked []Linked // further files, complete already
}

// Group is a set of buffers stored in one file: the weights of a model, or the moments of
// its optimizer.
type Group struct {
	Name    string // letters, digits, ".", "-" and "_": "policy", "policy.adamw"
	Buffers []NamedBuffer
}

// Write stores a checkpoint as directory step-NNNNNNNN of root and returns its path. It
// replaces a checkpoint of the same step once the new one is complete. On an error, an
// *Error, root is unchanged. It panics if names repeat or are not file names, and if Extra
// is not JSON.
func Write(be kernels.Backend, root string, s State) (string, error) {
	return system().writeState(be, root, s)
}

func (d disk) writeState(be kernels.Backend, root string, s State) (string, error) {
	dir := filepath.Join(root, stepDir(s.Step))
	RemoveInterrupted(root)
	out, err := d.stage("write checkpoint", dir)
	if err != nil {
		return "", err
	}
	defer out.discard()
	m := manifest{Magic: magic, Version: version, Step: s.Step, State: s.Extra, Files: []manifestFile{}}
	if m.State == nil {
		m.State = json.RawMessage("null")
	}
	seen := map[string]bool{}
	for _, g := range s.Groups {
		if seen[g.Name] {
			panic("checkpoint: two groups are named " + g.Name)
		}
		seen[g.Name] = true
		info, err := out.write(g.file(), func(w io.Writer) error { return WriteSafetensors(w, g.sources(be)) })
		if err != nil {
			return "", err
		}
		m.Files = append(m.Files, manifestFile{Name: info.Name, Bytes: info.Bytes,
			SHA256: hex.EncodeToString(info.SHA256[:])})
	}
	for _, l := range s.Linked {
		if seen[l.Name] {
			panic("checkpoint: two groups are named " + l.Name)
		}
		seen[l.Name] = true
		f, err := out.link(l)
		if err != nil {
			return "", err
		}
		m.Files = append(m.Files, f)
	}
	raw, err := m.render()
	if err != nil {
		panic("checkpoint: the state is not JSON: " + err.Error())
	}
	if _, err := out.writeBytes(manifestName, raw); err != nil {
		return "", err
	}
	if err := out.publish(true); err != nil {
		return "", err
	}
	return dir, nil
}

// file returns the name of the group's file. It panics if the group's name is not a file
// name.
func (g Group) file() string {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"
	if strings.Trim(g.Name, allowed) != "" || strings.Trim(g.Name, ".") == "" {
		panic("checkpoint: bad group name " + g.Name)
	}
	return g.Name + ".safetensors"
}

func (g Group) sources(be kernels.Backend) []Source {
	list := make([]Source, len(g.Buffers))
	for i, b := range g.Buffers {
		list[i] = b.source(be)
	}
	return list
}

// RemoveInterrupted removes the remains of interrupted writes and removals in root, as each
// Write does, for callers that may never write again. Nothing else may be writing in root.
// Remains that cannot be removed only take space.
func RemoveInterrupted(root string) {
	for _, name := range names(root) {
		if isPartial(name) {
			os.RemoveAll(filepath.Join(root, name))
		}
	}
}

// isPartial reports whether a name belongs to an unfinished checkpoint, or to unfinished weights for checkpoints.
func isPartial(name string) bool {
	base, ok := strings.CutSuffix(name, partial)
	base, hidden := strings.CutPrefix(base, ".")
	_, step := stepOf(base)
	return ok && hidden && (step || strings.HasSuffix(base, ".safetensors"))
}

// names returns the readable entries of a directory in order.
func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.Name()
	}
	return list
}
