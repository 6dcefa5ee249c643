package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// pdf draws the figure as a PDF of one page, with the glyphs it uses embedded and its text
// searchable. The date in the file is constant, so that equal figures are equal bytes.
func (f Figure) pdf(s Setting) ([]byte, error) {
	sheet := f.sheet(s)
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt",
		Size: fpdf.SizeType{Wd: s.Scale * sheet.w.Points(), Ht: s.Scale * sheet.h.Points()}})
	doc.SetMargins(0, 0, 0)
	doc.SetAutoPageBreak(false, 0)
	doc.SetCatalogSort(true)
	doc.SetCreationDate(time.Unix(0, 0).UTC())
	doc.SetModificationDate(time.Unix(0, 0).UTC())
	doc.SetProducer("exp", false)
	doc.SetTitle(f.Title, true)
	doc.SetSubject(f.Alt, true)
	doc.AddPage()
	doc.SetLineJoinStyle("round")

	canvas := &pdfCanvas{doc: doc, scale: s.Scale, height: sheet.h, known: map[string]bool{}}
	sheet.c = canvas
	f.picture.draw(sheet)
	var out bytes.Buffer
	if err := doc.Output(&out); err != nil {
		return nil, fmt.Errorf("figure %s: pdf: %w", f.Name, err)
	}
	return out.Bytes(), nil
}

// pdfCanvas draws on a PDF page. gonum's own (vgpdf) writes text in code page 1252, which
// has no minus sign, no Greek and no ≤, and embeds whole fonts.
type pdfCanvas struct {
	doc    *fpdf.Fpdf
	scale  float64
	height vg.Length // of the sheet
	known  map[string]bool
}

func (c *pdfCanvas) length(l vg.Length) float64 { return c.scale * l.Points() }

// at is the place of pt in points from the upper left corner.
func (c *pdfCanvas) at(pt vg.Point) (x, y float64) { return c.length(pt.X), c.length(c.height - pt.Y) }

func (c *pdfCanvas) SetLineWidth(w vg.Length) { c.doc.SetLineWidth(c.length(w)) }

func (c *pdfCanvas) SetLineDash(pattern []vg.Length, offset vg.Length) {
	lengths := make([]float64, len(pattern))
	for i, l := range pattern {
		lengths[i] = c.length(l)
	}
	c.doc.SetDashPattern(lengths, c.length(offset))
}

func (c *pdfCanvas) SetColor(k color.Color) {
	n := color.NRGBAModel.Convert(k).(color.NRGBA)
	r, g, b := int(n.R), int(n.G), int(n.B)
	c.doc.SetFillColor(r, g, b)
	c.doc.SetDrawColor(r, g, b)
	c.doc.SetTextColor(r, g, b)
	c.doc.SetAlpha(float64(n.A)/255, "Normal")
}

func (c *pdfCanvas) Stroke(p vg.Path) { c.path(p, "D") }
func (c *pdfCanvas) Fill(p vg.Path)   { c.path(p, "F") }

func (c *pdfCanvas) path(p vg.Path, style string) {
	for _, part := range p {
		switch part.Type {
		case vg.MoveComp:
			c.doc.MoveTo(c.at(part.Pos))
		case vg.LineComp:
			c.doc.LineTo(c.at(part.Pos))
		case vg.ArcComp:
			c.arc(part)
		case vg.CloseComp:
			c.doc.ClosePath()
		default:
			panic("figure: a sheet draws no curves")
		}
	}
	c.doc.DrawPath(style)
}

// arc draws an arc as cubic curves of a quarter circle at most, off by less than 0.03 % of
// the radius.
func (c *pdfCanvas) arc(a vg.PathComp) {
	pieces := int(math.Ceil(math.Abs(a.Angle) / (math.Pi / 2)))
	turn := a.Angle / float64(pieces)
	reach := 4.0 / 3 * math.Tan(turn/4)
	on := func(angle, along float64) (float64, float64) {
		sin, cos := math.Sincos(angle)
		return c.at(vg.Point{X: a.Pos.X + a.Radius*vg.Length(cos-along*sin),
			Y: a.Pos.Y + a.Radius*vg.Length(sin+along*cos)})
	}
	c.doc.LineTo(on(a.Start, 0))
	for i := range pieces {
		from := a.Start + float64(i)*turn
		x0, y0 := on(from, reach)
		x1, y1 := on(from+turn, -reach)
		x, y := on(from+turn, 0)
		c.doc.CurveBezierCubicTo(x0, y0, x1, y1, x, y)
	}
}

func (c *pdfCanvas) FillString(face font.Face, pt vg.Point, text string) {
	style := ""
	if face.Font.Weight == bold {
		style = "B"
	}
	if !c.known[style] {
		var file bytes.Buffer
		if _, err := face.Face.WriteSourceTo(nil, &file); err != nil {
			c.doc.SetError(err)
			return
		}
		c.doc.AddUTF8FontFromBytes("sans", style, file.Bytes())
		c.known[style] = true
	}
	c.doc.SetFont("sans", style, c.length(face.Font.Size))
	x, y := c.at(pt)
	c.doc.Text(x, y, text)
}
