package latex

import "exp/eval/grade/formula"

// symbolRunes are the non-ASCII characters of mathematics.
var symbolRunes = map[rune]token{
	'−': {kind: tokOp, text: "-"}, '–': {kind: tokOp, text: "-"}, '—': {kind: tokOp, text: "-"},
	'﹣': {kind: tokOp, text: "-"}, '－': {kind: tokOp, text: "-"},
	'＋': {kind: tokOp, text: "+"}, '×': {kind: tokOp, text: "*"}, '·': {kind: tokOp, text: "*"},
	'⋅': {kind: tokOp, text: "*"}, '∙': {kind: tokOp, text: "*"}, '∗': {kind: tokOp, text: "*"},
	'•': {kind: tokOp, text: "*"}, 'ℓ': {kind: tokSym, text: "ell"}, '¢': {kind: tokText, text: "cents"},
	'÷': {kind: tokOp, text: "/"}, '⁄': {kind: tokOp, text: "/"}, '∕': {kind: tokOp, text: "/"},
	'／': {kind: tokOp, text: "/"},
	'±': {kind: tokOp, text: "±"}, '∓': {kind: tokOp, text: "∓"},
	'≤': {kind: tokOp, text: "<="}, '⩽': {kind: tokOp, text: "<="}, '≥': {kind: tokOp, text: ">="},
	'⩾': {kind: tokOp, text: ">="},
	'≦': {kind: tokOp, text: "<="}, '≧': {kind: tokOp, text: ">="}, '⌊': {kind: tokOp, text: "⌊"},
	'⌋': {kind: tokOp, text: "⌋"}, '⌈': {kind: tokOp, text: "⌈"}, '⌉': {kind: tokOp, text: "⌉"},
	'≠': {kind: tokOp, text: "!="}, '≈': {kind: tokOp, text: "≈"}, '≃': {kind: tokOp, text: "≈"},
	'＝': {kind: tokOp, text: "="}, '＜': {kind: tokOp, text: "<"}, '＞': {kind: tokOp, text: ">"},
	'∈': {kind: tokOp, text: "in"}, '∪': {kind: tokOp, text: "cup"}, '∩': {kind: tokOp, text: "cap"},
	'∖': {kind: tokOp, text: "setminus"}, '→': {kind: tokOp, text: "->"},
	'∞': {kind: tokSym, text: formula.Infinity}, '∅': {kind: tokSym, text: formula.Empty}, 'ℝ': {kind: tokSym,
		text: formula.Reals},
	'ℕ': {kind: tokSym, text: "𝔹N"}, 'ℤ': {kind: tokSym, text: "𝔹Z"}, 'ℚ': {kind: tokSym, text: "𝔹Q"},
	'ℂ': {kind: tokSym, text: "𝔹C"},
	'π': {kind: tokSym, text: formula.Pi}, 'Π': {kind: tokSym, text: "Π"},
	'°': {kind: tokOp, text: "°"}, 'º': {kind: tokOp, text: "°"}, '˚': {kind: tokOp, text: "°"},
	'√': {kind: tokOp, text: "√"}, '∛': {kind: tokOp, text: "∛"},
	'（': {kind: tokOp, text: "("}, '）': {kind: tokOp, text: ")"}, '，': {kind: tokOp, text: ","},
	'、': {kind: tokOp, text: ","}, '；': {kind: tokOp, text: ";"}, '：': {kind: tokOp, text: ":"},
	'％': {kind: tokOp, text: "%"},
	'∑': {kind: tokOp, text: "∑"}, '∏': {kind: tokOp, text: "∏"}, '∫': {kind: tokOp, text: "∫"},
	'…': {kind: tokOp, text: "…"}, '⋯': {kind: tokOp, text: "…"},
	'′': {kind: tokOp, text: "'"}, '’': {kind: tokOp, text: "'"},
	'₹': {kind: tokText, text: "₹"},
	'€': {kind: tokText, text: "€"}, '£': {kind: tokText, text: "£"}, '¥': {kind: tokText, text: "¥"},
	'α': {kind: tokSym, text: "alpha"}, 'β': {kind: tokSym, text: "beta"}, 'γ': {kind: tokSym, text: "gamma"},
	'δ': {kind: tokSym, text: "delta"}, 'ε': {kind: tokSym, text: "epsilon"},
	'θ': {kind: tokSym, text: "theta"}, 'λ': {kind: tokSym, text: "lambda"}, 'μ': {kind: tokSym, text: "mu"},
	'ρ': {kind: tokSym, text: "rho"}, 'σ': {kind: tokSym, text: "sigma"},
	'φ': {kind: tokSym, text: "phi"}, 'ϕ': {kind: tokSym, text: "phi"}, 'ω': {kind: tokSym, text: "omega"},
	'ψ': {kind: tokSym, text: "psi"}, 'τ': {kind: tokSym, text: "tau"},
}

// IsSymbol reports whether a character outside ASCII is one of mathematics.
func IsSymbol(r rune) bool {
	_, ok := symbolRunes[r]
	return ok
}

// functions maps the function names, with or without a backslash, to ours.
var functions = map[string]string{
	"sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc",
	"sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch",
	"arcsin": "arcsin", "arccos": "arccos", "arctan": "arctan", "arccot": "arccot", "asin": "arcsin",
	"acos": "arccos",
	"atan": "arctan", "arctg": "arctan", "tg": "tan", "ctg": "cot",
	"arcsec": "arcsec", "arccsc": "arccsc", "asec": "arcsec", "acsc": "arccsc", "nthroot": "nthroot",
	"arsinh": "arcsinh", "arcosh": "arccosh", "artanh": "arctanh", "arcsinh": "arcsinh", "arccosh": "arccosh",
	"arctanh": "arctanh",
	"arccoth": "arccoth", "arcsech": "arcsech", "arccsch": "arccsch", "arcoth": "arccoth",
	"arsech": "arcsech", "arcsch": "arccsch",
	"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
	"log": "log", "ln": "ln", "lg": "lg", "exp": "exp", "abs": "abs", "max": "max", "min": "min", "gcd": "gcd",
	"lcm": "lcm", "det": "det", "floor": "floor", "ceil": "ceil", "cis": "cis", "Re": "re", "Im": "im",
}

// greek lists letters with the same name in plain text and LaTeX.
var greek = []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda",
	"mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
	"Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"}

// plainNames are words that mean something without a backslash.
var plainNames = makePlainNames()

func makePlainNames() map[string]token {
	m := map[string]token{
		"pi": {kind: tokSym, text: formula.Pi}, "infinity": {kind: tokSym, text: formula.Infinity},
		"inf": {kind: tokSym, text: formula.Infinity}, "oo": {kind: tokSym, text: formula.Infinity},
		"infty": {kind: tokSym, text: formula.Infinity},
		"sqrt":  {kind: tokOp, text: "√"}, "cbrt": {kind: tokOp, text: "∛"}, "binom": {kind: tokOp, text: "binom"},
		"frac": {kind: tokOp, text: "frac"},
		"and":  {kind: tokOp, text: "and"}, "or": {kind: tokOp, text: "or"}, "in": {kind: tokOp, text: "in"},
		"percent": {kind: tokOp, text: "%"}, "percents": {kind: tokOp, text: "%"},
		"degrees": {kind: tokOp, text: "°"},
		"degree":  {kind: tokOp, text: "°"}, "deg": {kind: tokOp, text: "°"},
		"theta": {kind: tokSym, text: "theta"}, "alpha": {kind: tokSym, text: "alpha"},
		"beta": {kind: tokSym, text: "beta"}, "phi": {kind: tokSym, text: "phi"},
		"lambda": {kind: tokSym, text: "lambda"}, "omega": {kind: tokSym, text: "omega"},
		"gamma": {kind: tokSym, text: "gamma"},
		"union": {kind: tokOp, text: "cup"},
	}
	for name, f := range functions {
		if name != "Re" && name != "Im" && name != "tg" {
			m[name] = token{kind: tokFunc, text: f}
		}
	}
	return m
}

// layoutCommands change only how things look.
var layoutCommands = []string{"displaystyle", "textstyle", "scriptstyle", "quad", "qquad", "limits", "nolimits",
	"bf", "mathcal", "mathsf", "mathfrak", "mathscr", "tilde", "hfill", "nonumber", "hline", "thinspace",
	"enspace", "space", "rm", "it", "pmb", "cal", "small",
	"large", "Large", "boxed", "fbox", "enclose", "allowbreak", "noindent", "smash", "negthinspace", "medspace",
	"underline", "framebox", "ensuremath", "therefore", "blacksquare", "square", "checkmark", "qed", "Box", "mathit",
	"mathtt", "mathstrut", "strut", "mathop", "mathord", "mathbin", "mathrel",
	"huge", "Huge", "normalsize", "tiny", "LARGE", "bigskip", "medskip", "par", "null", "relax", "!"}

// latexNames are the commands that stand for one token.
var latexNames = makeLatexNames()

func makeLatexNames() map[string]token {
	m := map[string]token{
		"frac": {kind: tokOp, text: "frac"}, "dfrac": {kind: tokOp, text: "frac"},
		"tfrac": {kind: tokOp, text: "frac"}, "cfrac": {kind: tokOp, text: "frac"},
		"nicefrac": {kind: tokOp, text: "frac"}, "sfrac": {kind: tokOp, text: "frac"},
		"sqrt": {kind: tokOp, text: "√"}, "surd": {kind: tokOp, text: "√"},
		"binom": {kind: tokOp, text: "binom"}, "dbinom": {kind: tokOp, text: "binom"},
		"tbinom": {kind: tokOp, text: "binom"}, "choose": {kind: tokOp, text: "choose"},
		"cdot": {kind: tokOp, text: "*"}, "times": {kind: tokOp, text: "*"}, "ast": {kind: tokOp, text: "*"},
		"bullet": {kind: tokOp, text: "*"}, "div": {kind: tokOp, text: "/"},
		"pm": {kind: tokOp, text: "±"}, "mp": {kind: tokOp, text: "∓"}, "over": {kind: tokOp, text: "over"},
		"le": {kind: tokOp, text: "<="}, "leq": {kind: tokOp, text: "<="}, "leqslant": {kind: tokOp, text: "<="},
		"ge": {kind: tokOp, text: ">="}, "geq": {kind: tokOp, text: ">="}, "geqslant": {kind: tokOp, text: ">="},
		"lt": {kind: tokOp, text: "<"}, "gt": {kind: tokOp, text: ">"}, "ne": {kind: tokOp, text: "!="},
		"neq": {kind: tokOp, text: "!="}, "approx": {kind: tokOp, text: "≈"}, "eq": {kind: tokOp, text: "="},
		"simeq": {kind: tokOp, text: "≈"}, "equiv": {kind: tokOp, text: "="},
		"in": {kind: tokOp, text: "in"}, "cup": {kind: tokOp, text: "cup"}, "cap": {kind: tokOp, text: "cap"},
		"bigcup": {kind: tokOp, text: "cup"}, "setminus": {kind: tokOp, text: "setminus"},
		"backslash": {kind: tokOp, text: "setminus"},
		"to":        {kind: tokOp, text: "->"}, "rightarrow": {kind: tokOp, text: "->"},
		"Rightarrow": {kind: tokOp, text: "->"}, "implies": {kind: tokOp, text: "->"},
		"longrightarrow": {kind: tokOp, text: "->"}, "Longrightarrow": {kind: tokOp, text: "->"},
		"mapsto": {kind: tokOp, text: "->"}, "longmapsto": {kind: tokOp, text: "->"},
		"mid":   {kind: tokOp, text: "mid"},
		"colon": {kind: tokOp, text: ":"},
		"infty": {kind: tokSym, text: formula.Infinity}, "pi": {kind: tokSym, text: formula.Pi},
		"emptyset": {kind: tokSym, text: formula.Empty}, "varnothing": {kind: tokSym, text: formula.Empty},
		"reals": {kind: tokSym, text: formula.Reals}, "R": {kind: tokSym, text: formula.Reals},
		"lvert": {kind: tokOp, text: "|("}, "rvert": {kind: tokOp, text: "|)"}, "vert": {kind: tokOp, text: "|"},
		"lVert": {kind: tokOp, text: "|("}, "rVert": {kind: tokOp, text: "|)"},
		"lbrace": {kind: tokOp, text: "\\{"}, "rbrace": {kind: tokOp, text: "\\}"},
		"lbrack": {kind: tokOp, text: "["},
		"rbrack": {kind: tokOp, text: "]"}, "lparen": {kind: tokOp, text: "("}, "rparen": {kind: tokOp, text: ")"},
		"lfloor": {kind: tokOp, text: "⌊"}, "rfloor": {kind: tokOp, text: "⌋"}, "lceil": {kind: tokOp, text: "⌈"},
		"rceil": {kind: tokOp, text: "⌉"}, "langle": {kind: tokOp, text: "⟨"}, "rangle": {kind: tokOp, text: "⟩"},
		"degree": {kind: tokOp, text: "°"}, "percent": {kind: tokOp, text: "%"}, "prime": {kind: tokOp, text: "'"},
		"land": {kind: tokOp, text: "and"}, "wedge": {kind: tokOp, text: "and"}, "lor": {kind: tokOp, text: "or"},
		"vee": {kind: tokOp, text: "or"},
		"sum": {kind: tokOp, text: "∑"}, "prod": {kind: tokOp, text: "∏"}, "int": {kind: tokOp, text: "∫"},
		"lim":   {kind: tokOp, text: "lim"},
		"ldots": {kind: tokOp, text: "…"}, "dots": {kind: tokOp, text: "…"}, "cdots": {kind: tokOp, text: "…"},
		"dotsb": {kind: tokOp, text: "…"}, "dotsc": {kind: tokOp, text: "…"}, "dotsm": {kind: tokOp, text: "…"},
		"overline": {kind: tokOp, text: "overline"}, "bar": {kind: tokOp, text: "overline"},
		"dot": {kind: tokOp, text: "dot"}, "cr": {kind: tokOp, text: "\\\\"},
		"ell": {kind: tokSym, text: "ell"}, "imath": {kind: tokSym, text: formula.I}, "i": {kind: tokSym,
			text: formula.I},
		"exponentialE": {kind: tokSym, text: formula.E}, "imaginaryI": {kind: tokSym, text: formula.I},
		"pounds": {kind: tokText, text: "£"}, "euro": {kind: tokText, text: "€"},
		"varepsilon": {kind: tokSym, text: "epsilon"}, "vartheta": {kind: tokSym, text: "theta"},
		"varphi": {kind: tokSym, text: "phi"}, "varrho": {kind: tokSym, text: "rho"},
	}
	for name, f := range functions {
		m[name] = token{kind: tokFunc, text: f}
	}
	for name, sign := range ordered {
		m[name] = token{kind: tokOp, text: sign}
	}
	for _, g := range greek {
		m[g] = token{kind: tokSym, text: g}
	}
	return m
}

// relations are the signs between the sides of a relation.
var relations = []string{"=", "≈", "<", ">", "<=", ">=", "!=", "in", "->", "⊂", "⊃", "⊆", "⊇", "⊊", "⊋",
	"≺", "≻", "⪯", "⪰", "≪", "≫", "<-", "∝", "∤", "⊲", "⊳", "⊗", "⋆"}

// ordered are the commands of relations, and of operators, whose sides do not commute.
var ordered = map[string]string{"subset": "⊂", "supset": "⊃", "subseteq": "⊆", "supseteq": "⊇", "subsetneq": "⊊",
	"supsetneq": "⊋", "prec": "≺", "succ": "≻", "preceq": "⪯", "succeq": "⪰", "ll": "≪", "gg": "≫",
	"leftarrow": "<-", "Leftarrow": "<-", "longleftarrow": "<-", "gets": "<-", "propto": "∝", "nmid": "∤",
	"triangleleft": "⊲", "triangleright": "⊳", "lhd": "⊲", "rhd": "⊳", "otimes": "⊗", "star": "⋆"}
