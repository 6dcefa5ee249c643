package figure

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
)

// Setting is the size of a figure. Scale multiplies the text and lines of a report's figure,
// whatever the width.
type Setting struct {
	Width    vg.Length
	Scale    float64
	Untitled bool // the document's own caption names the figure
}

// Report is the setting of a report's page.
func Report() Setting { return Setting{Width: pageWidth, Scale: 1} }

// Styles lists the styles that Styled knows.
func Styles() []string { return []string{"report", "paper", "slides"} }

// Styled returns the setting of a style. columns is 1 for a figure as wide as one column of
// two, 2 for one as wide as both; a report has one width.
//
//	paper   3.25 and 6.75 inches (ICML), text of 8 points, no title
//	slides  6 and 12 inches (a wide slide has 13.3), text of 17 and 20 points
func Styled(style string, columns int) (Setting, error) {
	if columns != 1 && columns != 2 {
		return Setting{}, fmt.Errorf("a figure is 1 or 2 columns wide, not %d", columns)
	}
	settings := map[string][2]Setting{
		"report": {Report(), Report()},
		"paper":  {{3.25 * vg.Inch, 0.8, true}, {6.75 * vg.Inch, 0.8, true}},
		"slides": {{6 * vg.Inch, 1.7, false}, {12 * vg.Inch, 2, false}},
	}
	if !slices.Contains(Styles(), style) {
		return Setting{}, fmt.Errorf("no style %q", style)
	}
	return settings[style][columns-1], nil
}

// Formats lists the file formats of figures.
func Formats() []string { return []string{"svg", "png", "pdf"} }

// Render draws the figure in a format at a setting. In a report's setting it returns the SVG that the figure
// already has.
func (f Figure) Render(format string, s Setting) ([]byte, error) {
	switch {
	case format == "pdf":
		return f.pdf(s)
	case s == Report() && format == "svg":
		return f.SVG, nil
	case format == "svg":
		return f.svg(s)
	case format == "png":
		return f.png(s)
	}
	return nil, fmt.Errorf("figure %s: no format %q", f.Name, format)
}
