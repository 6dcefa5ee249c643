package extract

import (
	"strings"

	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// answerBox returns the last box of a text, as LastBox does, that the words around it do not deny. refused is true if
// they deny all boxes.
func answerBox(s string) (content string, refused, ok bool) {
	if content, ok = LastBox(s); !ok {
		return "", false, false
	}
	denied := ""
	for head := s; ; {
		k := lastBoxCommand(head)
		if k < 0 {
			return content, true, true
		}
		inside, end, closed := boxAt(head, k)
		if !closed || !isRefused(inside, s[:k], s[end:]) && inside != denied {
			break
		}
		denied, head = inside, s[:k]
		if content, ok = LastBox(head); !ok || len(s)-k > maxStatement {
			return content, true, true
		}
	}
	return content, false, true
}

// LastBox returns the content of the last closed \boxed{…} or \fbox{…} and of the boxes right before it, or the side
// of a formula that calculates with it.
func LastBox(s string) (string, bool) {
	boxes, starts := "", len(s)
	for tries := 0; tries < 20; tries++ {
		k := lastBoxCommand(s[:starts])
		if k < 0 {
			break
		}
		content, end, ok := boxAt(s, k)
		if boxes == "" {
			if ok && content != "" {
				k, end, boxes = outermost(s, k, end, content)
				if side := sideAround(s, k, end, boxes); side != "" {
					return side, true
				}
			}
			starts = k
			continue
		}
		if !ok || end > starts || !joins(s[end:starts]) {
			break
		}
		if strings.TrimSpace(content) != strings.TrimSpace(boxes) {
			boxes = content + conjunction(s[end:starts]) + boxes
		}
		starts = k
	}
	// A box inside a box.
	for range 4 {
		t := strings.TrimSpace(boxes)
		if !strings.HasPrefix(t, "\\boxed{") || !strings.HasSuffix(t, "}") {
			break
		}
		boxes = strings.TrimSuffix(strings.TrimPrefix(t, "\\boxed{"), "}")
	}
	return boxes, boxes != ""
}

// bareBox matches a box that lost its backslash.
var bareBox = lazy(`(?:^|[^\\a-zA-Z])boxed\{([^{}]+)\}`)

// wholeBareBox matches a text that is nothing but such a box.
var wholeBareBox = lazy(`^[ *]*\$?boxed\{([^{}]+)\}\$?[ .*]*$`)

// lastBareBox returns the last box without backslash, unless its sentence denies it or the text emphasises a value.
func lastBareBox(s string) (string, bool) {
	s = tail(s, maxStatement)
	all := bareBox.FindAllStringSubmatchIndex(s, -1)
	if len(all) == 0 || bold(s) != "" {
		return "", false
	}
	m := all[len(all)-1]
	before := wording.Lower(s[strings.LastIndexAny(s[:m[0]], ".!?\n")+1 : m[2]])
	after := wording.Lower(strings.TrimLeft(s[m[1]:], "$*"))
	if denied(before) || wording.Unsettled(before) ||
		isRefused(s[m[2]:m[3]], before[:len(before)-len("boxed{")], after) {
		return "", false
	}
	return Statement(s[m[2]:m[3]]), true
}

// isRefused reports whether the words right before or right after a box deny its content.
func isRefused(content, before, after string) bool {
	before = strings.TrimRight(wording.Lower(tail(before, 80)), " $*\\([")
	after = strings.TrimLeft(wording.Lower(tailless(after)), " $*\\)]")
	return isDeniedBetween(before, after) || questioned.MatchString(after) ||
		revoked.MatchString(after) && !truthValue.MatchString(content)
}

// revoked matches a sentence after a box that calls it wrong: On second thought, that is wrong. The sentence must end
// there or give its reason: "That was wrong in my first attempt" revokes nothing.
var revoked = lazy(`^[$*.!?\s]*(?:(?:on second thought|on reflection|wait|hmm+|no|oops|` +
	`sorry|actually|but|however|unfortunately)\b[,.!]* *)*(?:i doubt (?:it|that|this)\b|` +
	`(?:scrap|scratch|strike|forget) (?:that|this)\b|correction:|(?:` +
	`(?:that|this|it)(?: (?:answer|value|result))?(?: (?:is|was|must be|seems|looks)|'s) ` +
	`(?:clearly |obviously |probably |also )?(?:wrong|incorrect|mistaken)|` +
	`(?:that|this)(?: (?:answer|value|result))?(?: (?:is|was|must be|seems|looks)|'s) ` +
	`(?:clearly |obviously |probably |also )?(?:false|impossible)|` +
	`(?:that|this|it)(?: (?:answer|value|result))? (?:(?:is|was|can)(?: ?not|n't)|can't)(?: be)? ` +
	`(?:right|correct|the (?:right |correct |final )?answer)|` +
	`(?:that|this)(?: (?:answer|value|result))? (?:(?:is|was|can)(?: ?not|n't)|can't)(?: be)? (?:true|possible))` +
	`(?:[.!,;:]|\s*$|\n| [—–-]| (?:so|because|since|but)\b))`)

// questioned matches a question mark after a box and the answer no.
var questioned = lazy(`^\? *(?:no|nope|not)\b`)

// truthValue matches a box that says whether something holds: what follows speaks of the statement, not of the box.
var truthValue = lazy(`(?i)^[^a-z]*(?:\\(?:text|textbf|mathrm|mbox)\{ *)?(?:yes|no|true|false|impossible)\b`)

// lastBoxCommand returns the index of the last \boxed or \fbox.
func lastBoxCommand(s string) int {
	for end := len(s); end > 0; {
		k := strings.LastIndexByte(s[:end], '\\')
		if k < 0 || strings.HasPrefix(s[k:], "\\boxed") || strings.HasPrefix(s[k:], "\\fbox") {
			return k
		}
		end = k
	}
	return -1
}

// boxAt reads the box at s[k:]: \boxed{…}, or \boxed 5 up to a $ or a space.
func boxAt(s string, k int) (content string, end int, ok bool) {
	i := k + len("\\boxed")
	if strings.HasPrefix(s[k:], "\\fbox") {
		i = k + len("\\fbox")
	}
	for i < len(s) && s[i] == ' ' {
		i++
	}
	if i == len(s) {
		return "", 0, false
	}
	if s[i] == '{' {
		// A box holds an answer, not a chapter: bound the search for its end.
		e := latex.MatchBrace(s[:min(len(s), i+latex.MaxAnswer)], i)
		if e < 0 {
			return "", 0, false
		}
		return s[i+1 : e], e + 1, true
	}
	e := strings.IndexAny(s[i:], " $\n,")
	if e < 0 {
		e = len(s) - i
	}
	return s[i : i+e], i + e, e > 0
}

// joins reports whether the text between two boxes makes them one answer.
func joins(s string) bool {
	if len(s) > 40 {
		return false
	}
	s = orOfOthers.ReplaceAllString(strings.ToLower(wording.WithoutFonts(s)), " or ")
	if strings.Trim(s, " ") == "" {
		return true
	}
	if !strings.ContainsAny(s, ",;&") && !strings.Contains(s, "and") && !strings.Contains(s, "or") {
		return false
	}
	s = strings.Trim(strings.NewReplacer("and", "", "or", "", "quad", "").Replace(s), " ,;&$\\()[]\n\t")
	return s == "" || named.MatchString(s) // x=\boxed{2} and y=\boxed{3}
}

// orOfOthers matches "or" in other languages between two values.
var orOfOthers = lazy(`^[ $)\]\\]*(?:` + orAbroad + `)[ $(\[\\]*$`)

// conjunction returns what joins two values that the text between them joins.
func conjunction(between string) string {
	if strings.Contains(wording.Lower(between), "or") || orOfOthers.MatchString(between) {
		return " or "
	}
	return ", "
}

// named matches the name and the equals sign before a box.
var named = lazy(`^[a-z](?:_\{?[a-z0-9]+\}?)?[ $]*=$`)
