package figure

import (
	"bytes"
	"image/png"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// curveOf is a curve whose texts need more than a Western code page.
func curveOf(t *testing.T) Figure {
	t.Helper()
	f, err := Curve{Head: Head{Name: "residual", Title: "Residual"},
		X:    Axis{Label: "training step"},
		Y:    Axis{Label: "log Z − β·r, 95 % ≤ 0"},
		Arms: []Arm{{Name: "flowrl ρ", Seeds: []Series{{Step: []float64{1, 2, 3}, Y: []float64{-1, 2, -3}}}}},
	}.Draw()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A figure has the width of its setting in every format, and the same bytes each time.
func TestSettings(t *testing.T) {
	f := curveOf(t)
	box := regexp.MustCompile(`/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]`)
	for _, style := range Styles() {
		for columns := 1; columns <= 2; columns++ {
			s, err := Styled(style, columns)
			if err != nil {
				t.Fatal(err)
			}
			want := s.Width.Points()
			for _, format := range Formats() {
				b, err := f.Render(format, s)
				if err != nil {
					t.Fatal(err)
				}
				if again, _ := f.Render(format, s); !bytes.Equal(again, b) {
					t.Errorf("%s %d %s: two renderings differ", style, columns, format)
				}
				var got float64
				switch format {
				case "pdf":
					got, _ = strconv.ParseFloat(string(box.FindSubmatch(b)[1]), 64)
				case "svg":
					got, _ = strconv.ParseFloat(string(regexp.MustCompile(`width="([\d.]+)pt"`).FindSubmatch(b)[1]), 64)
				case "png":
					img, err := png.DecodeConfig(bytes.NewReader(b))
					if err != nil {
						t.Fatal(err)
					}
					got = float64(img.Width) * float64(vg.Inch/pngDPI)
				}
				if math.Abs(got-want) > 1.5 { // dots per inch are a whole number
					t.Errorf("%s %d %s: %.1f points wide, want %.1f", style, columns, format, got, want)
				}
				if format == "svg" && bytes.Contains(b, []byte(">Residual</text>")) == s.Untitled {
					t.Errorf("%s %d: title drawn: %v", style, columns, s.Untitled)
				}
			}
		}
	}
	if _, err := Styled("paper", 3); err == nil {
		t.Error("3 columns are accepted")
	}
	if _, err := f.Render("eps", Report()); err == nil {
		t.Error("eps is accepted")
	}
}

// The text of a PDF can be searched, whatever its letters, and its fonts are embedded.
func TestPDFText(t *testing.T) {
	f := curveOf(t)
	s, err := Styled("paper", 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Render("pdf", s)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("/FontFile2")); n != 2 || len(b) > 60_000 {
		t.Errorf("%d fonts embedded in %d bytes, want 2 in 60 000 at most", n, len(b))
	}
	path := filepath.Join(t.TempDir(), "f.pdf")
	write(t, path, b)
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("pdftotext (Debian: poppler-utils) is not installed")
	}
	text, err := exec.Command("pdftotext", path, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{f.Data.(curveData).Y, "flowrl ρ", "training step", "−2"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the PDF's text lacks %q:\n%s", want, text)
		}
	}
	if fonts, err := exec.Command("pdffonts", path).Output(); err != nil || strings.Count(string(fonts), "yes yes yes")+
		strings.Count(string(fonts), "yes no  yes") != 2 {
		t.Errorf("fonts are not embedded: %v\n%s", err, fonts)
	}
}
