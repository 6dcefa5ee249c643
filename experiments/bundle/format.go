package bundle

import (
	"archive/tar"
	"bytes"
	"io"
	"path"
	"slices"
	"strings"

	"exp/experiments/ident"
)

// formatName identifies the layout in the manifest.
const formatName = "exp.bundle/1"

// Names within the tar.
const (
	rowsDir      = "rows/"
	dataDir      = "data/"
	manifestName = "manifest.json"
	sealName     = "seal"
)

// Manifest lists the contents of a bundle.
type Manifest struct {
	Format  string   `json:"format"`
	Schema  int      `json:"schema"` // of the exporting store
	Runs    []Run    `json:"runs"`
	LeftOut []string `json:"left_out"` // LeftWeights, LeftTexts
	Tables  []Table  `json:"tables"`   // in reading order
	Blobs   []Data   `json:"blobs"`
	Files   []File   `json:"files"`
}

// Contents that an export may leave out.
const (
	LeftWeights = "weights"
	LeftTexts   = "texts"
)

// Run is a run of a bundle.
type Run struct {
	RID    ident.Digest `json:"run"`
	Name   string       `json:"name"`
	Seed   int64        `json:"seed"`
	Chosen bool         `json:"chosen"` // false: a chosen run depends on it
}

// Table describes the rows of a store table.
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

// File is a file in a run's directory. A blob may hold its bytes.
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

// ours reports whether a path of a run's directory belongs in a bundle. It excludes the
// lock and partial files, which begin with a dot or end with .partial.
func ours(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".partial") {
			return false
		}
	}
	return p != "lock"
}

// checkpointFolder holds a folder for each stage that saves checkpoints, with a folder for each of them.
const checkpointFolder = "ckpt"

// WeightFolders are the folders of a run's directory that hold weights: checkpoints and what merge made.
func WeightFolders() []string {
	return []string{checkpointFolder, "model", "adapter", "megatron", "fsdp", "reward_model"}
}

// heavy reports whether a path of a run's directory holds weights.
func heavy(p string) bool {
	folder, _, within := strings.Cut(p, "/")
	return within && slices.Contains(WeightFolders(), folder)
}

// folderOf returns the folder of weights that a file belongs to: its checkpoint's or merge's. It is empty for
// other files.
func folderOf(p string) string {
	if !heavy(p) {
		return ""
	}
	parts := strings.Split(p, "/")
	if parts[0] != checkpointFolder {
		return parts[0]
	}
	return path.Join(parts[:min(3, len(parts)-1)]...)
}

// sealSize is the length of a bundle's end: the seal's header and text and the two empty
// blocks that end a tar, 512 bytes each.
const sealSize = 4 * 512

// sealOf returns the end of a bundle whose preceding bytes have that digest.
func sealOf(sum ident.Digest) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := sum.String() + "\n"
	// Writing to a buffer cannot fail, and this header fits any tar format.
	_ = w.WriteHeader(header(sealName, int64(len(text))))
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// header returns a tar header that depends only on name and size.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg}
}
