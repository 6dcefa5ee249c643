package code

import (
	"regexp"
	"slices"
	"strings"
)

// Program is what was found in a response.
type Program struct {
	Text     string // empty: none was found
	Language string // as the fence says, in lower case: "python", "cpp"; empty: not said
	How      string // where it was found, or why nothing was
}

// languages are the names that fences use, with ours.
func languages() map[string]string {
	return map[string]string{
		"python": "python", "python3": "python", "py": "python", "py3": "python", "pypy": "python", "pypy3": "python",
		"c": "c", "cpp": "cpp", "c++": "cpp", "cc": "cpp", "cxx": "cpp", "c++17": "cpp", "c++20": "cpp",
		"go": "go", "golang": "go", "javascript": "javascript", "js": "javascript", "node": "javascript",
		"java": "java", "rust": "rust", "typescript": "typescript", "ts": "typescript",
	}
}

// Extract finds the program of a response as a reader would: after the reasoning, the
// last fenced block that is marked as Python, else the last that is not marked, else the
// last that is marked as another programming language. A block that the response ends in
// counts as closed there. Without any fence it is the response itself, with prose around
// the code cut off.
func Extract(response string) Program {
	response = strings.ReplaceAll(response, "\r\n", "\n")
	how := ""
	if _, after, ok := cutLast(response, "</think>"); ok {
		response, how = after, " after the reasoning"
	} else if strings.Contains(response, "<think>") {
		return Program{How: "the reasoning does not end"}
	}
	blocks := fences(response)
	names := languages()
	for _, pass := range []struct {
		fits func(tag string) bool
		how  string
	}{
		{func(tag string) bool { return names[tag] == "python" }, "the last block of Python"},
		{func(tag string) bool { return tag == "" }, "the last block without a language"},
		{func(tag string) bool { return names[tag] != "" }, "the last block of code"},
	} {
		for _, b := range slices.Backward(blocks) {
			if strings.TrimSpace(b.text) != "" && pass.fits(b.tag) {
				if b.open {
					how += ", which is not closed"
				}
				return Program{b.text, names[b.tag], pass.how + how}
			}
		}
	}
	if len(blocks) > 0 {
		return Program{How: "no block of code is among the fenced ones"}
	}
	if text := unfenced(response); text != "" {
		return Program{Text: text, How: "the text itself" + how}
	}
	return Program{How: "no program in the text"}
}

// cutLast cuts around the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// fence is a fenced block of Markdown.
type fence struct {
	tag  string // the first word after the fence, in lower case
	text string
	open bool // the text ends before the block does
}

// fences lists the blocks between lines of three or more ` or ~ (CommonMark 0.31 §4.5,
// but indented by any width, as inside lists; that much is taken off each line).
func fences(text string) (list []fence) {
	var b *fence
	var mark string // that opened b
	var indent int
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\n")
		trimmed := strings.TrimLeft(body, " \t")
		run := leadingMarks(trimmed)
		switch {
		case b == nil && run >= 3:
			info := strings.TrimSpace(trimmed[run:])
			if trimmed[0] == '`' && strings.Contains(info, "`") {
				continue // code inside a line
			}
			tag, _, _ := strings.Cut(strings.Trim(info, "{}. "), " ")
			list = append(list, fence{tag: strings.ToLower(tag), open: true})
			b, mark, indent = &list[len(list)-1], trimmed[:run], len(body)-len(trimmed)
		case b != nil && run >= len(mark) && trimmed[0] == mark[0] && strings.TrimSpace(trimmed[run:]) == "":
			b.open, b = false, nil
		case b != nil:
			cut := 0
			for cut < indent && cut < len(line) && (line[cut] == ' ' || line[cut] == '\t') {
				cut++
			}
			b.text += line[cut:]
		}
	}
	return list
}

// leadingMarks counts the ` or ~ that s begins with.
func leadingMarks(s string) int {
	if s == "" || s[0] != '`' && s[0] != '~' {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, s[:1]))
}

// Lines that begin a program, and lines that are code if the ones before were.
var (
	beginsCode = regexp.MustCompile(
		`^(import [\w.]+|from [\w.]+ import |def \w+\s*\(|async def \w+|class \w+|@\w+|#!|if __name__|for \w[\w, ]* in .*:|while .*:|with .*:|print\(|[A-Za-z_]\w*(\[[^\]]*\]|\.\w+)*(\s*,\s*[A-Za-z_]\w*)*\s*[-+*/%&|^]?=[^=])`)
	goesOn = regexp.MustCompile(
		`^(\s|#|[)\]}]|(elif|else|try|except|finally|return|raise|pass|global|nonlocal|assert|del|if|for|while|with|yield|break|continue|async|await|match)\b.*|[A-Za-z_][\w.]*\(.*|"""|''')`)
)

// unfenced is the code of a text without fences: from the first line that begins a
// program to the last before prose. A text that begins indented and is code throughout
// is the body of a function.
func unfenced(text string) string {
	lines := strings.SplitAfter(text, "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
	if first < 0 {
		return ""
	}
	if l := lines[first]; l[0] != ' ' && l[0] != '\t' {
		first = slices.IndexFunc(lines, beginsCode.MatchString)
		if first < 0 {
			return ""
		}
	}
	end, quote := first, ""
	for i := first; i < len(lines); i++ {
		l := lines[i]
		if quote == "" && strings.TrimSpace(l) != "" && !beginsCode.MatchString(l) && !goesOn.MatchString(l) {
			break
		}
		if strings.TrimSpace(l) != "" {
			end = i + 1
		}
		quote = insideQuotes(l, quote)
	}
	return strings.Join(lines[first:end], "")
}

// insideQuotes tells which triple quote is open after a line, given that before it.
func insideQuotes(line, open string) string {
	for {
		if open != "" {
			i := strings.Index(line, open)
			if i < 0 {
				return open
			}
			line, open = line[i+3:], ""
			continue
		}
		i, j := strings.Index(line, `"""`), strings.Index(line, "'''")
		switch {
		case i < 0 && j < 0:
			return ""
		case j < 0 || i >= 0 && i < j:
			line, open = line[i+3:], `"""`
		default:
			line, open = line[j+3:], "'''"
		}
	}
}

// upstreamFence is the published pattern: a tag of word characters or none, and a line
// end at once after it. An earlier fence that it does not know shifts the pairing.
var upstreamFence = regexp.MustCompile("(?s)```(?:[\\p{L}\\p{N}_]+)?\n(.*?)```")

// ExtractUpstream finds the program as rllm does (code_reward.py of the FlowRL release):
// the last match of three back-ticks, a tag and a line end, up to three back-ticks;
// ok is false if there is none. What it finds may be empty.
func ExtractUpstream(response string) (program string, ok bool) {
	all := upstreamFence.FindAllStringSubmatch(response, -1)
	if len(all) == 0 {
		return "", false
	}
	return strings.TrimSpace(all[len(all)-1][1]), true
}

// withoutMain removes the blocks of __main__ as rllm does before it runs assertions on a
// program: by lines, from one that begins with the condition, whatever stands before it,
// up to the next that is neither blank nor indented.
func withoutMain(program string) string {
	var kept []string
	skipping := false
	for line := range strings.SplitSeq(program, "\n") {
		text := pythonStrip(line)
		switch {
		case strings.HasPrefix(text, `if __name__ == "__main__"`) ||
			strings.HasPrefix(text, `if __name__ == '__main__'`):
			skipping = true
			continue
		case skipping && text != "" && line[0] != ' ' && line[0] != '\t':
			skipping = false
		}
		if !skipping {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
