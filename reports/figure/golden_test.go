package figure

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	update = flag.Bool("update", false, "rewrite testdata/*.svg")
	pngDir = flag.String("png", "", "also write every sample as PNG and SVG to this folder, to be looked at")
)

// TestGolden compares every sample's SVG with testdata. To look at them:
// go test ./reports/figure -run Golden -png DIR
func TestGolden(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f := drawn(t, s)
			if *pngDir != "" {
				write(t, filepath.Join(*pngDir, s.name+".png"), pngOf(t, f))
				write(t, filepath.Join(*pngDir, s.name+".svg"), f.SVG)
				t.Logf("alt: %s", f.Alt)
				t.Logf("caption: %s", f.Caption)
			}
			path := filepath.Join("testdata", s.name+".svg")
			if *update {
				write(t, path, f.SVG)
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (write it with -update)", err)
			}
			if !bytes.Equal(f.SVG, want) {
				t.Errorf("SVG differs from %s (-want +got):\n%s", path, cmp.Diff(string(want), string(f.SVG)))
			}
		})
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
