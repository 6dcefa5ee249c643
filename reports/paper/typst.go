package paper

import (
	"fmt"
	"io"
	"strings"

	"exp/reports/compare"
)

// WriteTypst writes a comparison as Typst figures of tables.
func WriteTypst(w io.Writer, r *compare.Result) error {
	return (&language{
		needs:   "#include this file",
		comment: "//",
		escape:  typstEscape,
		table:   typstTable,

		cell:      func(text string) string { return text },
		bold:      func(text string) string { return "*" + text + "*" },
		star:      "#super[\\*]",
		plusMinus: " ± ", atMost: " (≤ ", atLeast: " (≥ ", none: "–",

		percent: " %", plusMinusSign: "±", atMostSign: "≤", atLeastSign: "≥", starSign: "#super[\\*]",
		pAtMost: "_p_ ≤ %v",
	}).write(w, r)
}

func typstTable(d *document, columns []column, n int) {
	d.line("")
	d.line("#figure(")
	d.line("  caption: [%s],", d.caption(columns))
	d.line("  table(")
	d.line("    columns: %d,", len(columns)+1)
	d.line("    align: (left,%s),", strings.Repeat(" center,", len(columns)))
	d.line("    stroke: none,")
	d.line("    table.hline(),")
	suites, rules := "[]", ""
	spans(columns, func(suite string, first, n int) {
		suites += fmt.Sprintf(", table.cell(colspan: %d, align: center)[%s]", n, d.escape(suite))
		rules += fmt.Sprintf("table.hline(start: %d, end: %d, stroke: 0.5pt), ", first, first+n)
	})
	d.line("    %s,", suites)
	d.line("    %s", strings.TrimSpace(rules))
	typstRow(d, d.headings(columns))
	d.line("    table.hline(stroke: 0.5pt),")
	start, arms := d.rows(columns)
	if start != nil {
		typstRow(d, start)
		d.line("    table.hline(stroke: 0.5pt),")
	}
	for _, cells := range arms {
		typstRow(d, cells)
	}
	d.line("    table.hline(),")
	d.line("  ),")
	d.line(") <tab-%s>", d.label(n))
}

func typstRow(d *document, cells []string) {
	d.line("    [%s],", strings.Join(cells, "], ["))
}

// typstEscape makes text safe for Typst's markup.
var typstEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "$", `\$`, "#", `\#`, "<", `\<`, ">", `\>`,
	"@", `\@`, "[", `\[`, "]", `\]`, "~", `\~`, "/", `\/`, "-", `\-`, "=", `\=`, "+", `\+`).Replace
