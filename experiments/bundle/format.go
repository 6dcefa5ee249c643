package bundle

import (
	"archive/tar"
	"bytes"
	"io"
	"path"
	"strings"

	"exp/experiments/ident"
)

// formatName is what a manifest begins with. Another layout takes another name.
const formatName = "exp.bundle/1"

// Names within the tar.
const (
	rowsDir      = "rows/"
	dataDir      = "data/"
	manifestName = "manifest.json"
	sealName     = "seal"
)

// Manifest lists what a bundle holds.
type Manifest struct {
	Format  string   `json:"format"`
	Schema  int      `json:"schema"` // of the store that it came from
	Runs    []Run    `json:"runs"`
	LeftOut []string `json:"left_out"` // LeftWeights, LeftTexts
	Tables  []Table  `json:"tables"`   // in the order in which they are read
	Blobs   []Data   `json:"blobs"`
	Files   []File   `json:"files"`
}

// What a bundle can be without.
const (
	LeftWeights = "weights"
	LeftTexts   = "texts"
)

// Run is a run of a bundle.
type Run struct {
	RID    ident.Digest `json:"run"`
	Name   string       `json:"name"`
	Seed   int64        `json:"seed"`
	Chosen bool         `json:"chosen"` // otherwise a chosen run is made from it
}

// Table is the rows of a table of the store.
type Table struct {
	Name   string       `json:"name"`
	Rows   int64        `json:"rows"`
	Size   int64        `json:"size"` // bytes
	SHA256 ident.Digest `json:"sha256"`
}

// Data is a blob.
type Data struct {
	SHA256 ident.Digest `json:"sha256"`
	Size   int64        `json:"size"`
}

// File is a file of a run's directory. Its bytes may be those of a blob.
type File struct {
	Run  ident.Digest `json:"run"`
	Path string       `json:"path"` // within the directory, with slashes
	Data
}

// valid reports whether the path stays within the run's directory.
func (f File) valid() bool {
	return f.Path != "" && f.Path != "." && !strings.HasPrefix(f.Path, "../") && f.Path != ".." &&
		!path.IsAbs(f.Path) && path.Clean(f.Path) == f.Path &&
		!strings.ContainsAny(f.Path, "\\\x00") && !f.Run.IsZero() && ours(f.Path)
}

// ours reports whether a path of a run's directory belongs in a bundle: the lock is
// a process's, and what begins with a dot or ends with .partial is half-written.
func ours(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".partial") {
			return false
		}
	}
	return p != "lock"
}

// heavy reports whether a path of a run's directory holds weights: checkpoints and
// the merged model.
func heavy(p string) bool { return strings.HasPrefix(p, "ckpt/") || strings.HasPrefix(p, "model/") }

// sealSize is the length of the end of a bundle: the header of the seal, its text and
// the two empty blocks that end a tar, of 512 bytes each.
const sealSize = 4 * 512

// sealOf is the end of a bundle whose bytes before it have that digest.
func sealOf(sum ident.Digest) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := sum.String() + "\n"
	// A buffer takes everything, and this header fits any format of tar.
	_ = w.WriteHeader(header(sealName, int64(len(text))))
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// header is the same for the same name and size: no owner, no time.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg}
}
