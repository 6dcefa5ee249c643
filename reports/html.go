package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

//go:embed page.css
var pageCSS string

//go:embed page.tmpl
var pageTemplate string

// Section is a part of a report as HTML, without its heading.
type Section struct {
	ID, Title string
	HTML      template.HTML
}

// Style returns the style sheet of a report's page.
func Style() string { return pageCSS }

// Sections renders the report's sections for a page with its own style sheet, which must
// define Style's classes.
func (r *Report) Sections() ([]Section, error) {
	t, err := templates(nil, "", false)
	if err != nil {
		return nil, err
	}
	var list []Section
	for _, sec := range r.page.Sections {
		out := Section{ID: sec.ID, Title: sec.Title}
		for _, b := range sec.Blocks {
			var html bytes.Buffer
			if err := t.ExecuteTemplate(&html, kind(b), b); err != nil {
				return nil, fmt.Errorf("report: %w", err)
			}
			out.HTML += template.HTML(html.String())
		}
		list = append(list, out)
	}
	return list, nil
}

// Page renders the report as a document for a server whose content security policy allows
// its style sheet (Style) but no style attributes. Its head links to home.
func (r *Report) Page(home string) ([]byte, error) {
	t, err := templates(nil, home, false)
	if err != nil {
		return nil, err
	}
	return execute(t, r.page)
}

// html renders a page as one self-contained document: inline style and figures, no
// scripts, no external addresses.
func (p page) html(figures []string) ([]byte, error) {
	t, err := templates(figures, "", true)
	if err != nil {
		return nil, err
	}
	return execute(t, p)
}

// templates reads the templates of a page and its blocks. figures are the formats of the
// figures' files; styled keeps the style attributes of figures.
func templates(figures []string, home string, styled bool) (*template.Template, error) {
	t := template.New("page")
	t.Funcs(template.FuncMap{
		"kind": kind,
		"css":  func() template.CSS { return template.CSS(pageCSS) },
		"home": func() string { return home },
		"inline": func(f numbered) template.HTML {
			svg := inlineSVG(f)
			if !styled {
				svg = presented(svg)
			}
			return template.HTML(svg)
		},
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
	return t, nil
}

func execute(t *template.Template, p page) ([]byte, error) {
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

var styleRE = regexp.MustCompile(`\sstyle="([^"]*)"`)

// presented writes the style attributes of an SVG as presentation attributes, which mean
// the same.
func presented(svg []byte) []byte {
	return styleRE.ReplaceAllFunc(svg, func(attribute []byte) []byte {
		var out []byte
		for declaration := range strings.SplitSeq(string(styleRE.FindSubmatch(attribute)[1]), ";") {
			name, value, found := strings.Cut(declaration, ":")
			if found {
				out = append(out, ` `+strings.TrimSpace(name)+`="`+strings.TrimSpace(value)+`"`...)
			}
		}
		return out
	})
}
