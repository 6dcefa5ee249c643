package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"regexp"
)

//go:embed page.css
var pageCSS string

//go:embed page.tmpl
var pageTemplate string

// html renders a page as one self-contained document: inline style and figures, no
// scripts, no external addresses.
func (p page) html(figures []string) ([]byte, error) {
	t := template.New("page")
	t.Funcs(template.FuncMap{
		"kind":    kind,
		"css":     func() template.CSS { return template.CSS(pageCSS) },
		"inline":  func(f numbered) template.HTML { return template.HTML(inlineSVG(f)) },
		"caption": numbered.caption,
		"files":   func(f numbered) line { return f.links(figures) },
		"render": func(b block) (template.HTML, error) {
			var out bytes.Buffer
			err := t.ExecuteTemplate(&out, kind(b), b)
			return template.HTML(out.String()), err
		},
	})
	if _, err := t.Parse(pageTemplate); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return out.Bytes(), nil
}

// kind returns the name of a block's template.
func kind(b block) string {
	switch b.(type) {
	case paragraph:
		return "paragraph"
	case heading:
		return "heading"
	case bullets:
		return "bullets"
	case callout:
		return "callout"
	case *grid:
		return "grid"
	case gallery:
		return "gallery"
	case listing:
		return "listing"
	case folded:
		return "folded"
	case problem:
		return "problem"
	}
	panic(fmt.Sprintf("reports: no block %T", b))
}

var (
	namespaceRE = regexp.MustCompile(`\s+xmlns(:xlink)?="[^"]*"`)
	commentRE   = regexp.MustCompile(`(?s)<!--.*?-->`)
	sizeRE      = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)
)

// inlineSVG returns a figure's SVG for HTML: without namespaces, which HTML implies, and
// without a size, which the page sets. It drops the title, which browsers show as a
// tooltip over the whole figure; aria-label holds the alt text.
func inlineSVG(f numbered) []byte {
	svg := commentRE.ReplaceAll(f.Inline(), nil)
	end := bytes.IndexByte(svg, '>')
	head := namespaceRE.ReplaceAll(svg[:end:end], nil)
	head = sizeRE.ReplaceAll(head, []byte(`<svg class="plot"`))
	head = append(head, ` aria-label="`+template.HTMLEscapeString(f.Alt)+`"`...)
	body := titleRE.ReplaceAll(svg[end:], nil)
	return append(head, body...)
}

var titleRE = regexp.MustCompile(`(?s)<title>.*?</title>\s*<desc>.*?</desc>`)
