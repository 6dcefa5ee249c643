package paper

import (
	"fmt"
	"io"
	"strings"

	"exp/reports/compare"
)

// WriteLaTeX writes a comparison as LaTeX tables for the package booktabs.
func WriteLaTeX(w io.Writer, r *compare.Result) error {
	return (&language{
		needs:   `needs \usepackage{booktabs}; table* spans two columns`,
		comment: "%",
		escape:  latexEscape,
		table:   latexTable,

		cell:      func(text string) string { return "$" + text + "$" },
		bold:      func(text string) string { return `\mathbf{` + text + "}" },
		star:      "^{*}",
		plusMinus: ` \pm `, atMost: `\,(\le `, atLeast: `\,(\ge `, none: "--",

		percent: `\,\%`, plusMinusSign: `$\pm$`, atMostSign: `$\le$`, atLeastSign: `$\ge$`, starSign: `$^{*}$`,
		pAtMost: `$p \le %v$`,
	}).write(w, r)
}

func latexTable(d *document, columns []column, n int) {
	d.line("")
	d.line(`\begin{table}[t]`)
	d.line(`  \centering\small`)
	d.line(`  \caption{%s}`, d.caption(columns))
	d.line(`  \label{tab:%s}`, d.label(n))
	d.line(`  \begin{tabular}{l%s}`, strings.Repeat("c", len(columns)))
	d.line(`    \toprule`)
	suites, rules := []string{""}, ""
	spans(columns, func(suite string, first, n int) {
		suites = append(suites, fmt.Sprintf(`\multicolumn{%d}{c}{%s}`, n, d.escape(suite)))
		rules += fmt.Sprintf(`\cmidrule(lr){%d-%d}`, first+1, first+n)
	})
	latexRow(d, suites)
	d.line("    %s", rules)
	latexRow(d, d.headings(columns))
	d.line(`    \midrule`)
	start, arms := d.rows(columns)
	if start != nil {
		latexRow(d, start)
		d.line(`    \midrule`)
	}
	for _, cells := range arms {
		latexRow(d, cells)
	}
	d.line(`    \bottomrule`)
	d.line(`  \end{tabular}`)
	d.line(`\end{table}`)
}

func latexRow(d *document, cells []string) {
	d.line(`    %s \\`, strings.TrimLeft(strings.Join(cells, " & "), " "))
}

// latexEscape makes text safe for LaTeX.
var latexEscape = strings.NewReplacer(`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `#`, `\#`,
	`%`, `\%`, `_`, `\_`, `^`, `\textasciicircum{}`, `~`, `\textasciitilde{}`, `<`, `\textless{}`, `>`, `\textgreater{}`,
	`|`, `\textbar{}`, "−", "$-$").Replace
