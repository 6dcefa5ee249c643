package reports

import (
	"fmt"
	"slices"
)

// Formats selects the contents of a bundle. The zero value selects everything.
type Formats struct {
	Pages   []string // of "html", "md", "json"; nil: all
	Figures []string // of "svg", "png"; nil: both, empty and not nil: none
}

// Names of formats.
var (
	PageFormats   = []string{"html", "md", "json"}
	FigureFormats = []string{"svg", "png"}
)

// Bundle renders the report. It always includes the manifest.
func (r *Report) Bundle(f Formats) (Bundle, error) {
	if f.Pages == nil {
		f.Pages = PageFormats
	}
	if f.Figures == nil {
		f.Figures = FigureFormats
	}
	b := Bundle{}
	var err error
	if slices.Contains(f.Pages, "html") {
		if b["index.html"], err = r.page.html(f.Figures); err != nil {
			return nil, err
		}
	}
	if slices.Contains(f.Pages, "md") {
		b["report.md"] = r.page.markdown(f.Figures)
	}
	if slices.Contains(f.Pages, "json") {
		if b["data.json"], err = encode(r.data(f.Figures)); err != nil {
			return nil, fmt.Errorf("report: data.json: %w", err)
		}
	}
	for _, fig := range r.drawn.figures {
		for _, ext := range f.Figures {
			content := fig.SVG
			if ext == "png" {
				content = fig.PNG
			}
			b[fig.file(ext)] = content
		}
	}
	for _, a := range r.source.arms {
		b[a.configFile()] = []byte(a.Runs[0].yaml)
	}
	if b[manifestName], err = encode(r.manifest(b)); err != nil {
		return nil, fmt.Errorf("report: manifest: %w", err)
	}
	return b, nil
}

// Arms returns the names of the arms, in order.
func (r *Report) Arms() []string { return armNames(r.source.arms) }

// Runs returns the number of runs in the report.
func (r *Report) Runs() (n int) {
	for _, a := range r.source.arms {
		n += len(a.Runs)
	}
	return n
}

// Figures returns the number of figures drawn.
func (r *Report) Figures() int { return len(r.drawn.figures) }

// Omitted returns the number of figures without data; the appendix gives the reasons.
func (r *Report) Omitted() int { return len(r.drawn.omitted) }
