package peer

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// LaTeX as plain text, as pylatexenc 2.11 writes it (LatexNodes2Text), for the commands that occur in answers. A
// command that it does not know disappears; its arguments stay.

// latexSigns are the commands that stand for a sign, each with the sign behind its name.
const latexSigns = `
alphaα betaβ gammaγ deltaδ epsilonϵ varepsilonε zetaζ etaη thetaθ varthetaϑ iotaι kappaκ varkappaϰ
lambdaλ muμ nuν xiξ piπ varpiϖ rhoρ varrhoϱ sigmaσ varsigmaς tauτ upsilonυ phiϕ varphiφ chiχ psiψ
omegaω GammaΓ DeltaΔ ThetaΘ LambdaΛ XiΞ PiΠ SigmaΣ UpsilonΥ PhiΦ PsiΨ OmegaΩ to→ rightarrow→
leftarrow← leftrightarrow↔ Rightarrow⇒ Leftarrow⇐ Leftrightarrow⇔ longrightarrow⟶ Longrightarrow⟹
mapsto↦ uparrow↑ downarrow↓ nearrow↗ le≤ leq≤ ge≥ geq≥ neq≠ approx≈ approxeq≊ equiv≡ sim∼ simeq≃
cong≅ propto∝ pm± mp∓ times× div÷ cdot· ast∗ star⋆ bullet∙ circ∘ cup∪ cap∩ bigcup⋃ bigcap⋂ sqcup⊔
in∈ notin∉ ni∋ subset⊂ supset⊃ subseteq⊆ supseteq⊇ subsetneq⊊ supsetneq⊋ emptyset∅ varnothing∅
infty∞ forall∀ exists∃ nexists∄ lnot¬ wedge∧ vee∨ oplus⊕ ominus⊖ otimes⊗ odot⊙ sum∑ prod∏ coprod∐
int∫ iint∬ oint∮ limsuplim sup liminflim inf angle∠ measuredangle∡ perp⊥ parallel∥ nparallel∦ mid|
nmid∤ vert| Vert‖ lvert| rvert| lfloor⌊ rfloor⌋ lceil⌈ rceil⌉ langle⟨ rangle⟩ ldots… cdots⋯ dots…
vdots⋮ ddots⋱ prime' square□ blacksquare▪ therefore∴ because∵ ellℓ hbarħ partial∂ nabla∇ setminus∖
leqslant⩽ geqslant⩾ ll≪ gg≫ prec≺ succ≻ preceq≼ succeq≽ alephℵ wp℘ dagger† textdegree° triangleleft◃
triangleright▹ bigtriangleup△ diamond♢ top⊤ vdash⊢ surd√ natural♮ flat♭ sharp♯`

// latexWords are the commands that stand for their names.
const latexWords = `
lim log ln sin cos tan arcsin arccos arctan exp max min sup inf sinh cosh tanh`

// latexTexts maps these commands to their texts.
var latexTexts = sync.OnceValue(func() map[string]string {
	m := map[string]string{"quad": "  ", "qquad": "    ", "lbrace": "{", "rbrace": "}", "backslash": "\\"}
	for _, s := range strings.Fields(latexSigns) {
		name := strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		m[s[:len(s)-len(name)]] = name
	}
	for _, w := range strings.Fields(latexWords) {
		m[w] = w
	}
	return m
})

// latexAccents are the signs that combine with the argument of a command.
var latexAccents = map[string]string{"vec": "\u20d7", "bar": "\u0305", "hat": "\u0302", "tilde": "\u0303",
	"dot": "\u0307", "ddot": "\u0308", "not": "\u0338"}

// latexFonts are the first letters, A and a, of the alphabets that commands write in.
var latexFonts = map[string][2]rune{"mathbf": {'𝐀', '𝐚'}, "mathit": {'𝐴', '𝑎'}, "mathcal": {'𝒜', '𝒶'},
	"mathbb": {'𝔸', '𝕒'}, "mathsf": {'𝖠', '𝖺'}, "mathfrak": {'𝔄', '𝔞'}, "mathtt": {'𝙰', '𝚊'}}

// latexDropped are the commands whose first argument disappears too.
var latexDropped = map[string]bool{"color": true, "textcolor": true, "hspace": true, "vspace": true, "mbox": true}

// maxLatexDepth limits the nesting of arguments; the reader drops anything deeper.
const maxLatexDepth = 100

// latexReader reads LaTeX.
type latexReader struct {
	s     string
	i     int
	depth int
}

// latexToText returns the text of LaTeX.
func latexToText(s string) string {
	r := latexReader{s: s}
	var b strings.Builder
	for r.i < len(r.s) {
		b.WriteString(r.text(""))
		if r.i < len(r.s) {
			r.i++ // a brace that closes nothing
		}
	}
	return b.String()
}

// text reads up to a closing brace or \end{env}.
func (r *latexReader) text(env string) string {
	var b strings.Builder
	if r.depth++; r.depth > maxLatexDepth {
		r.i = len(r.s)
	}
	defer func() { r.depth-- }()
	for r.i < len(r.s) && r.s[r.i] != '}' {
		if env != "" && strings.HasPrefix(r.s[r.i:], "\\end{"+env+"}") {
			break
		}
		b.WriteString(r.node())
	}
	return b.String()
}

// node reads one group, command or character.
func (r *latexReader) node() string {
	rest := r.s[r.i:]
	switch {
	case rest[0] == '\\':
		return r.command()
	case rest[0] == '{':
		return r.group()
	case rest[0] == '~':
		r.i++
		return "\u00a0"
	case rest[0] == '&':
		r.i++
		return "   "
	}
	for _, sign := range [][2]string{{"---", "—"}, {"--", "–"}, {"''", "”"}, {"``", "“"}} {
		if strings.HasPrefix(rest, sign[0]) {
			r.i += len(sign[0])
			return sign[1]
		}
	}
	_, n := utf8.DecodeRuneInString(rest)
	r.i += n
	return rest[:n]
}

// group reads the text between braces.
func (r *latexReader) group() string {
	r.i++
	t := r.text("")
	if r.i < len(r.s) {
		r.i++
	}
	return t
}

// argument reads the next group, command or character after white space.
func (r *latexReader) argument() string {
	r.spaces()
	if r.depth++; r.depth > maxLatexDepth {
		r.i = len(r.s)
	}
	defer func() { r.depth-- }()
	if r.i == len(r.s) || r.s[r.i] == '}' {
		return ""
	}
	return r.node()
}

func (r *latexReader) spaces() {
	for r.i < len(r.s) && strings.IndexByte(" \t\n\r", r.s[r.i]) >= 0 {
		r.i++
	}
}

// option reads an argument in square brackets, if there is one.
func (r *latexReader) option() {
	rest := strings.TrimLeft(r.s[r.i:min(len(r.s), r.i+100)], " \t\n")
	if k := strings.IndexByte(rest, ']'); strings.HasPrefix(rest, "[") && k > 0 {
		r.i = min(len(r.s), r.i+100) - len(rest) + k + 1
	}
}

// command reads a command with its arguments.
func (r *latexReader) command() string {
	r.i++
	start := r.i
	for r.i < len(r.s) && (r.s[r.i]|0x20 >= 'a' && r.s[r.i]|0x20 <= 'z') {
		r.i++
	}
	name := r.s[start:r.i]
	if name == "" {
		return r.symbol()
	}
	r.spaces()
	if t, ok := latexTexts()[name]; ok {
		return t
	}
	if sign, ok := latexAccents[name]; ok {
		return r.argument() + sign
	}
	if first, ok := latexFonts[name]; ok {
		return inAlphabet(r.argument(), name, first)
	}
	switch {
	case name == "frac":
		above := r.argument()
		return above + "/" + r.argument()
	case name == "sqrt":
		r.option()
		return "√(" + r.argument() + ")"
	case latexDropped[name]:
		r.argument()
	case name == "begin":
		return r.environment()
	case name == "end":
		r.argument()
	}
	return ""
}

// symbol reads a command of one sign, such as \, or \{.
func (r *latexReader) symbol() string {
	if r.i == len(r.s) {
		return ""
	}
	_, n := utf8.DecodeRuneInString(r.s[r.i:])
	c := r.s[r.i : r.i+n]
	r.i += n
	switch c {
	case " ", ",", ";", ":", "\n":
		return " "
	case "!", "(", ")", "[", "]", "/", "-":
		return ""
	case "\\":
		r.option()
		return "\n"
	}
	return c
}

// environment reads the rest of \begin: a matrix as [ 1 2; 3 4 ], others as their content.
func (r *latexReader) environment() string {
	name := r.argument()
	if name == "array" {
		r.argument()
	}
	t := r.text(name)
	if strings.HasPrefix(r.s[r.i:], "\\end{") {
		r.i += len("\\end{}") + len(name)
	}
	switch name {
	case "array", "pmatrix", "bmatrix", "smallmatrix", "psmallmatrix", "bsmallmatrix":
		return "[ " + strings.ReplaceAll(strings.Trim(t, " \t"), "\n", "; ") + " ]"
	}
	return t
}

// inAlphabet writes letters in the alphabet of a command. Five letters of double-struck ones are elsewhere.
func inAlphabet(s, name string, first [2]rune) string {
	elsewhere := map[rune]rune{'C': 'ℂ', 'N': 'ℕ', 'P': 'ℙ', 'Q': 'ℚ', 'R': 'ℝ', 'Z': 'ℤ'}
	return strings.Map(func(c rune) rune {
		switch {
		case name == "mathbb" && elsewhere[c] != 0:
			return elsewhere[c]
		case 'A' <= c && c <= 'Z':
			return first[0] + c - 'A'
		case 'a' <= c && c <= 'z':
			return first[1] + c - 'a'
		}
		return c
	}, s)
}
