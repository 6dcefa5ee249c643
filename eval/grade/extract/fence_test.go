package extract

import "testing"

// A fenced block becomes a displayed formula, unless it has delimiters of its own, whichever they are.
func TestUnfenced(t *testing.T) {
	for in, want := range map[string]string{
		"so ```math\nx+1\n``` holds":                       "so $$\nx+1\n$$ holds",
		"```latex\n$x$\n```":                               "$x$",
		"```tex\n\\(x\\)\n```":                             `\(x\)`,
		"```LaTeX\n\\[x\\]\n```":                           `\[x\]`,
		"```katex\n\\begin{equation}x\\end{equation}\n```": `\begin{equation}x\end{equation}`,
		"```math\n\\begin{align*}x&=1\\end{align*}\n```":   `\begin{align*}x&=1\end{align*}`,
		"```math\n\\begin{gather}x\\end{gather}\n```":      `\begin{gather}x\end{gather}`,
		"```math\na\n``` and ```math\nb\n```":              "$$\na\n$$ and $$\nb\n$$",
		"$`x^2`$":                                          "$x^2$",
		"```math\n \n```":                                  "```math\n \n```",
		"```python\nx = 1\n```":                            "```python\nx = 1\n```",
		"`x`":                                              "`x`",
	} {
		if got := Unfenced(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
