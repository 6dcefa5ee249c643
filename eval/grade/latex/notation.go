package latex

import (
	"strings"

	"exp/eval/grade/pattern"
)

// Notations that are written in another way before an answer is read.

// notation is a pattern, a text that it needs, which is quick to find, and what replaces it.
type notation struct {
	needs   string
	pattern *pattern.Pattern
	with    string
}

var notations = []notation{
	{"fcolorbox", pattern.New(`\\fcolorbox *\{[^{}]*\} *\{[^{}]*\}`), ""},
	{"ll ", pattern.New(`^\\text\{ *([Aa]ll (?:real )?(?:numbers?|values?)[^{}\\]*(?:than|at least|at most|between)` +
		`[^{}\\]*)\}$`), "$1"},
	{"^", pattern.New(`([0-9])\^(?:o|\{ *o *\})( |$|[^a-zA-Z])`), `$1^\circ $2`},
	{"choose", pattern.New(`(^|[ (=+*])([0-9]+|[a-z]) choose ([0-9]+|[a-z])($|[ .)=+*])`), `$1\binom{$2}{$3}$4`},
	{"plus or minus", pattern.New(`(?:\\text\{ *)?\bplus or minus\b *\}?`), `\pm `},
	{"€", pattern.New(`^(€? ?-?[0-9]+),([0-9]{2})( ?€?)$`), "$1.$2$3"},
	{"C", pattern.New(`(?:\{\})?[_^]\{?([0-9a-z]+)\}? ?C_\{?([0-9a-z]+)\}?`), `\binom{$1}{$2}`}, // {}_7C_3
	// {}_5P_2
	{"P", pattern.New(`(?:\{\}|(^|[^0-9A-Za-z)}\]]))[_^]\{?([0-9a-z]+)\}? ?P_\{?([0-9a-z]+)\}?`),
		`$1\frac{$2!}{($2-$3)!}`},
	{"C", pattern.New(`\bC\(([0-9]+), ?([0-9]+)\)`), `\binom{$1}{$2}`},
	// C_7^3, as in China and France; {}_7C_3 is above
	{"C", pattern.New(`(^|[^\\_^A-Za-z}])(?:\\(?:mathrm|text) ?\{C\}|C)_\{?([0-9]+)\}?\^\{?([0-9]+)\}?`), `$1\binom{$2}{$3}`},
	{"sec", pattern.New(`(^|[^\\a-z])sec ?\(`), `$1\sec(`}, // no seconds
	{"...", pattern.New(`, ?\.{3}(,| *$)`), `,\ldots$1`},
	{"...", pattern.New(`([-+*·⋅×]|\\cdot|\\times) *\.{3}`), `${1}\dots `},
	{`.\overline`, pattern.New(`(^|[^0-9])\.\\overline`), `${1}0.\overline`},
	{"q.", pattern.New(`\b[Ss]q\. ?`), "square "},
	{"u.", pattern.New(`\b[Cc]u\. ?`), "cubic "},
	{"R", pattern.New(`(?:\\mathbb ?\{?R\}?|ℝ)_\{?(?:\\ge|\\geq|\\geqslant|≥|>=) ?0\}?`), `[0,\infty)`},
	{"R", pattern.New(`(?:\\mathbb ?\{?R\}?|ℝ)(?:\^\{?\+\}?|_\{?(?:>|\\gt) ?0\}?|_\{?\+\}?)`), `(0,\infty)`},
	{"R", pattern.New(`(?:\\mathbb ?\{?R\}?|ℝ)(?:\^ ?\{? ?(?:\*|\\ast|\\times)\}?|_\{? ?(?:\\neq?|≠) ?0 ?\}?)`),
		`\mathbb{R}\setminus\{0\}`},
	{"xcept", pattern.New(`(?i)^(?:\\text\{)?(?:all |the |any )?(?:real )?(?:numbers|values|x|reals)(?: of x)?,? except` +
		`(?: for)? *(?:x ?= ?)?\}? *(?:x ?= ?)?\$?` +
		`([-−]?(?:[0-9./]+|\\[dt]?frac(?:[0-9]{2}|\{[^{}]*\}\{[^{}]*\})))\}?$`), `\mathbb{R}\setminus\{$1\}`},
	{"ll ", pattern.New(`^\\text\{ *[Aa]ll (?:real )?(?:numbers|values(?: of)?)? *\} *` +
		`([a-z] *(?:\\neq?\b|≠|\\in\b|∈))`), "$1"},
	{"ll ", pattern.New(`^(?:\\text\{ *)?[Aa]ll (?:positive |natural )?(?:integers?|numbers?)(?: of)? *\}? *\$?` +
		`([a-z]\$? *(?:[<>≤≥]|\\[lg]eq?))`), "$1"},
	{"for", pattern.New(`,? *(?:\\text\{ *,? *(?:for|where|with)(?: all| any| every)? *\}|` +
		`\b(?:for|where|with)(?: all| any| every)?) *` +
		`\$?([a-z] *(?:\\[lg]eq?|[<>≤≥]) *[0-9]+\$?)$`), ", $1"},
	{"ll ", pattern.New(`^\\text\{ *[Aa]ll (?:real )?(?:numbers?|values?)?(?: of)? *\} *([a-z] *(?:[<>≤≥]|\\[lg]eq?))`), "$1"},
	{"ll ", pattern.New(`^\\text\{ *[Aa]ll (?:real )?(?:numbers?|values?)(?: that are)? ` +
		`((?:less|greater|smaller|larger|more) than(?: or equal to)?|at least|at most) *\} *`), "$1 "},
	{"xcept", pattern.New(`(?i)^(?:\\text\{)?(?:all |the |any )?(?:real )?(?:numbers|values|x|reals),? ` +
		`except(?: for)? *\}? *([-−]?[0-9./]+) *(?:,|(?:\\text\{)? *and *\}?) *([-−]?[0-9./]+)\}?$`), `\mathbb{R}\setminus\{$1,$2\}`},
	{"U", pattern.New(`([)\]])\s*(?:\\text\{ *)?U(?: *\})?\s*((?:\\left *)?[(\[])`), `$1 \cup $2`},
	{"base", pattern.New(`^([0-9A-F][0-9A-Fa-f]*)(?:\\text\{|\\[ ,]|[ (~])+(?:in )?base[ -]*\}? *` +
		`\$?([0-9]+|two|three|four|five|` +
		`six|seven|eight|nine|twelve|sixteen)[ ).}$]*$`), `${1}_{\text{$2}}`},
	{"Z", pattern.New(`^\\\{(.*[^ ]) *(?:\\mid|[:|]) *([a-z]) *\\in *\\mathbb ?\{?Z\}? *\\\}$`),
		`$1, $2 \in \mathbb{Z}`},
	{"Z", pattern.New(`[ ,;~]*(?:\\[ ,;]|\\q?quad|` +
		`\\text\{ *,? *(?:for|where|with)(?: any| all| some| every)? *\}| |\()+` +
		`([a-z]) *\\in *\\mathbb ?\{?Z\}?\)?$`), `, $1 \in \mathbb{Z}`},
	{"R", pattern.New(`[ ,;~]*(?:\\[ ,;]|\\q?quad|\\text\{ *,? *(?:for|where|with) *\}| |\()+` +
		`([a-z]) *(?:\\in|∈) *(?:\\mathbb ?\{?R\}?|ℝ)\)?$`), `, $1 \in \mathbb{R}`},
	{"integer", pattern.New(`[ ,;~]*\\text\{ *,? *(?:for|where|with) *` +
		`(?:(?:any|all|some|every|each) )?(?:integers? *\} *([a-z])|` +
		`\} *([a-z]) *\\text\{ *is an(?:y)? integer *\})$`), `, $1$2 \in \mathbb{Z}`},
	{"real", pattern.New(`[ ,;~]*(?:\\text\{ *,? *| )(?:for|where|with) *(?:any|all|every|each|some|arbitrary) real *` +
		`(?:numbers?|values?|constants?)? *\}? *\$?([a-z])\$?$`), `, $1 \in \mathbb{R}`},
	{" be ", pattern.New(`^\$?([a-z])\$? (?:must|has to|should|can only) be `), "$1 is "},
	{"ll ", pattern.New(`(?i)^all (?:real )?(?:numbers?|values?|x)(?: of x)? (?:that are |which are )?` +
		`(less|greater|smaller|larger|at least|at most|between)`), "$1"},
	{"I", pattern.New(`^(?:\\text\{)?((?:I{1,3}|IV|V)(?:(?:, | and |, and )(?:I{1,3}|IV|V))*)(?: only)?\}?$`), "$1"},
	{"per cent", pattern.New(`\bper cent\b`), "percent"},
	{"US", pattern.New(`\bUS(\\?\$)`), "$1"},
	{"ll", pattern.New(`^\\text\{ *[Aa]ll *\} *([a-z]) *` +
		`(\\text\{ *(?:less|greater|smaller|larger|more) than)`), "$1 $2"},
	{"itive", pattern.New(`^\$?([a-zA-Z])\$?(?: *\\text\{)? *is (?:strictly )?positive\.? *\}?$`), "$1 > 0"},
	{"ative", pattern.New(`^\$?([a-zA-Z])\$?(?: *\\text\{)? *is (?:strictly )?negative\.? *\}?$`), "$1 < 0"},
	{"negative", pattern.New(`^\$?([a-zA-Z])\$?(?: *\\text\{)? *is non-?negative\.? *\}?$`), `$1 \ge 0`},
	{"mapsto", pattern.New(`^([a-zA-Z]) *(?::|\\colon) *([a-z]) *\\(?:long)?mapsto\b`), "$1($2) ="},
	{"mapsto", pattern.New(`^[a-z] *\\(?:long)?mapsto\b`), ""},
	// delimiters, the width of the line and the style
	{"genfrac", pattern.New(`\\genfrac *(?:\{[^{}]*\} *){4}`), `\frac`},
	{"root", pattern.New(`\\root *(?:\{([^{}]*)\}|([0-9a-z])) *\\of\b`), `\sqrt[$1$2]`},
	{"^", pattern.New(`(^|[0-9 ])\^ *\{?([0-9]+)\}? *[/⁄] *_ *\{?([0-9]+)\}?`), `$1\frac{$2}{$3}`},
	{"^", pattern.New(`\^ *(?:\{ *)?\\(?:text|mathrm|textrm) *\{ *o *\}(?: *\})?`), `^\circ `},
	{"Omega", pattern.New(`([0-9])((?: |~|\\[,;: ]|\\text\{)*)([kM]?)(?: |\}|\\[,;: ])*\\Omega$`), `$1\text{ ${3}Ω}`},
	{"_", pattern.New(`^\(([0-9A-Fa-f]+)\)_`), "${1}_"},
	{"_", pattern.New(`([0-9A-F])\\(?:text|mathrm)\{([A-F]+)\}([0-9A-F]*_)`), "$1$2$3"}, // 7\text{E}_{16}
	{"_", pattern.New(`^\\(?:text|mathrm)\{([0-9A-F]+)\}_`), "${1}_"},
	{`\hat`, pattern.New(`\\hat *\{? *\\?([ijk])(?:math)?\b *\}?`), `\mathbf{$1}`},
	{"^", pattern.New(`\[([^\[\]]*,[^\[\]]*)\]\^\{?(?:T|\\top|\\mathrm\{T\}|\\mathsf\{T\}|\\intercal)\}?$`), "($1)"},
	{"^", pattern.New(`\(([^()]*,[^()]*)\)\^\{?(?:T|\\top|\\mathrm\{T\}|\\mathsf\{T\}|\\intercal)\}?$`), "($1)"},
}

// raisedFraction matches a fraction of small digits: ³⁄₄.
var raisedFraction = pattern.New(`([⁰¹²³⁴-⁹]+)[⁄/]([₀-₉]+)`)

// smallDigits writes them in full size.
var smallDigits = strings.NewReplacer("⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4", "⁵", "5", "⁶", "6", "⁷", "7",
	"⁸", "8", "⁹", "9",
	"₀", "0", "₁", "1", "₂", "2", "₃", "3", "₄", "4", "₅", "5", "₆", "6", "₇", "7", "₈", "8", "₉", "9")

// inUsualNotation rewrites them.
func inUsualNotation(s string) string {
	if len(s) > 1000 {
		return s
	}
	if strings.ContainsAny(s, "₀₁₂₃₄₅₆₇₈₉") {
		s = raisedFraction.ReplaceAllStringFunc(s, func(m string) string {
			return raisedFraction.ReplaceAllString(smallDigits.Replace(m), `\frac{$1}{$2}`)
		})
	}
	for _, n := range notations {
		if strings.Contains(s, n.needs) {
			s = n.pattern.ReplaceAllString(s, n.with)
		}
	}
	return s
}
