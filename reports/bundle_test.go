package reports

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
)

// smallBundle is a report of one page.
func smallBundle(t *testing.T, text string) Bundle {
	t.Helper()
	b := Bundle{"index.html": []byte(text), "figures/01-a.svg": []byte("<svg/>")}
	m := Manifest{Schema: manifestSchema}
	for name, content := range b {
		m.Files = append(m.Files, ManifestFile{name, len(content), ident.Sum(content).String()})
	}
	var err error
	if b[manifestName], err = encode(m); err != nil {
		t.Fatal(err)
	}
	return b
}

// tree reads a folder: path to content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, p))
		m[p] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func contents(b Bundle) map[string]string {
	m := map[string]string{}
	for name, content := range b {
		m[name] = string(content)
	}
	return m
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWriteTo(t *testing.T) {
	old, next := smallBundle(t, "old"), smallBundle(t, "new")
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		force   bool
		refused string // part of the error; "": written
		aside   bool
	}{
		{"new folder", func(*testing.T, string) {}, false, "", false},
		{"empty folder", func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "x"), "")
			os.Remove(filepath.Join(dir, "x"))
		}, false, "", false},
		{"older report", func(t *testing.T, dir string) { mustWrite(t, old, dir) }, false, "", false},
		{"older report with a note", func(t *testing.T, dir string) {
			mustWrite(t, old, dir)
			put(t, filepath.Join(dir, "notes.txt"), "mine")
		},
			false, "notes.txt is not part of the report", false},
		{"edited report", func(t *testing.T, dir string) {
			mustWrite(t, old, dir)
			put(t, filepath.Join(dir, "index.html"), "edited")
		},
			false, "index.html has changed", false},
		{"foreign folder", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "thesis.tex"), "years") }, false, "no report manifest, manifest.json", false},
		{"another manifest", func(t *testing.T, dir string) { put(t, filepath.Join(dir, manifestName), `{"schema":"web/1"}`) }, false, "no report manifest", false},
		{"a file", func(t *testing.T, dir string) { put(t, dir, "file") }, false, "it is a file", false},
		{"forced", func(t *testing.T, dir string) { put(t, filepath.Join(dir, "thesis.tex"), "years") }, true, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "report")
			tt.prepare(t, dir)
			before := tree(t, parent)
			aside, err := next.WriteTo(dir, tt.force)
			if tt.refused != "" {
				var foreign *ForeignError
				if !errors.As(err, &foreign) || !strings.Contains(err.Error(), tt.refused) {
					t.Fatalf("error %v, want a ForeignError with %q", err, tt.refused)
				}
				if diff := cmp.Diff(before, tree(t, parent)); diff != "" {
					t.Errorf("a refusal changed something (-before +after):\n%s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(contents(next), tree(t, dir)); diff != "" {
				t.Errorf("the report is not as rendered (-want +got):\n%s", diff)
			}
			if tt.aside != (aside != "") {
				t.Fatalf("moved aside to %q", aside)
			}
			entries := 1
			if tt.aside {
				entries = 2
				if diff := cmp.Diff(map[string]string{"thesis.tex": "years"}, tree(t, aside)); diff != "" {
					t.Errorf("what was moved aside changed (-want +got):\n%s", diff)
				}
			}
			if left, _ := os.ReadDir(parent); len(left) != entries {
				t.Errorf("%d entries next to the report, want %d: %v", len(left), entries, left)
			}
		})
	}
}

func mustWrite(t *testing.T, b Bundle, dir string) {
	t.Helper()
	if _, err := b.WriteTo(dir, false); err != nil {
		t.Fatal(err)
	}
}

// A report that cannot be written leaves the older one as it was and adds no file.
func TestWriteToFails(t *testing.T) {
	old, bad := smallBundle(t, "old"), smallBundle(t, "new")
	bad["../outside"] = []byte("x")
	parent := t.TempDir()
	dir := filepath.Join(parent, "report")
	mustWrite(t, old, dir)
	if _, err := bad.WriteTo(dir, false); err == nil || !strings.Contains(err.Error(), "outside") {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(contents(old), tree(t, dir)); diff != "" {
		t.Errorf("the older report changed (-want +got):\n%s", diff)
	}
	if left, _ := os.ReadDir(parent); len(left) != 1 {
		t.Errorf("left next to it: %v", left)
	}
}

// replace puts the older folder back if the new one cannot take its place.
func TestReplacePutsBack(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "report")
	put(t, filepath.Join(dir, "a"), "old")
	if err := replace(filepath.Join(parent, "missing"), dir); err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(map[string]string{"report/a": "old"}, tree(t, parent)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteToRefusesCurrentFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, out := range []string{".", "..", ""} {
		if _, err := smallBundle(t, "x").WriteTo(out, true); err == nil {
			t.Errorf("--out %q was written", out)
		}
	}
	mustWrite(t, smallBundle(t, "x"), "sub/report")
}

// A link to a folder stays a link.
func TestWriteToLink(t *testing.T) {
	parent := t.TempDir()
	b := smallBundle(t, "x")
	mustWrite(t, b, filepath.Join(parent, "real"))
	link := filepath.Join(parent, "link")
	if err := os.Symlink(filepath.Join(parent, "real"), link); err != nil {
		t.Skip(err)
	}
	mustWrite(t, smallBundle(t, "y"), link)
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v (%v)", info.Mode(), err)
	}
	if got := tree(t, filepath.Join(parent, "real"))["index.html"]; got != "y" {
		t.Errorf("index.html is %q", got)
	}
}

func TestManifest(t *testing.T) {
	s := newStudy(t)
	b := s.bundle(Input{Comparison: s.comparison()}, Formats{})
	var m Manifest
	if err := json.Unmarshal(b[manifestName], &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Files) != len(b)-1 {
		t.Errorf("%d files in the manifest, %d in the bundle", len(m.Files), len(b))
	}
	for _, f := range m.Files {
		if got := ident.Sum(b[f.Path]).String(); got != f.Digest || len(b[f.Path]) != f.Size {
			t.Errorf("%s: digest or size is not the file's", f.Path)
		}
	}
	if len(m.Inputs) != 4 || m.Inputs[0].RID != s.flowrl[0].RID.String() || m.Inputs[0].Code["train"] != digestOf("code").String() {
		t.Errorf("inputs %+v", m.Inputs)
	}
	if len(m.Waivers) != 1 || m.Waivers[0].Key != "train.optim.lr" {
		t.Errorf("waivers %+v", m.Waivers)
	}
}
