package term

// Style says what a piece of text is, not what colour it has. The words must
// tell the same without it: colour never carries information alone.
type Style uint8

// The styles. Good and Bad differ in hue, in brightness and in weight: cyan
// against bold red stays apart under every common colour blindness, green
// against red does not.
const (
	Plain  Style = iota
	Strong       // headings, names
	Faint        // what may be overlooked
	Accent       // bars, ids
	Good
	Warn
	Bad
)

// sgr holds the parameters of "select graphic rendition" per style: the 16
// colours, which follow the theme of the user's terminal.
var sgr = [...]string{
	Plain:  "",
	Strong: "1",
	Faint:  "2",
	Accent: "34",
	Good:   "36",
	Warn:   "33",
	Bad:    "1;31",
}

// Paint returns text in style s, or text itself where color is false, the
// style is Plain or the text is empty.
func (s Style) Paint(text string, color bool) string {
	if !color || text == "" || int(s) >= len(sgr) || sgr[s] == "" {
		return text
	}
	return "\x1b[" + sgr[s] + "m" + text + "\x1b[0m"
}
