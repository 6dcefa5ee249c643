package reports

import (
	"fmt"
	"maps"
	"slices"

	"exp/reports/figure"
)

// Formats selects the contents of a bundle. The zero value selects everything.
type Formats struct {
	Pages   []string // of "html", "md", "json"; nil: all
	Figures []string // of FigureFormats; nil: DefaultFigures, empty and not nil: none

	// Setting returns the size of a format's figure files; nil: a report's for all.
	Setting func(format string) figure.Setting
}

// Names of formats.
var (
	PageFormats   = []string{"html", "md", "json"}
	FigureFormats = figure.Formats()
	// DefaultFigures leaves out PDF, which the page does not need.
	DefaultFigures = []string{"svg", "png"}
)

// Bundle renders the report. It always includes the manifest.
func (r *Report) Bundle(f Formats) (Bundle, error) {
	if f.Pages == nil {
		f.Pages = PageFormats
	}
	if f.Figures == nil {
		f.Figures = DefaultFigures
	}
	if f.Setting == nil {
		f.Setting = func(string) figure.Setting { return figure.Report() }
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
	if err := r.figureFiles(b, f); err != nil {
		return nil, err
	}
	for _, a := range r.source.arms {
		b[a.configFile()] = []byte(a.Runs[0].yaml)
	}
	if b[manifestName], err = encode(r.manifest(b)); err != nil {
		return nil, fmt.Errorf("report: manifest: %w", err)
	}
	return b, nil
}

// figureFiles adds the figures' files, drawn concurrently.
func (r *Report) figureFiles(b Bundle, f Formats) error {
	files := make([]map[string][]byte, len(r.drawn.figures))
	err := concurrently(len(files), func(i int) error {
		fig := r.drawn.figures[i]
		files[i] = map[string][]byte{}
		for _, ext := range f.Figures {
			content, err := fig.Render(ext, f.Setting(ext))
			if err != nil {
				return fmt.Errorf("report: %w", err)
			}
			files[i][fig.file(ext)] = content
		}
		return nil
	})
	for _, of := range files {
		maps.Copy(b, of)
	}
	return err
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
