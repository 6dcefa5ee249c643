package chat

import (
	"html"
	"strings"
)

// Templates render without automatic escaping; only the filters e, escape, forceescape and
// safe turn text into markup, which then escapes text joined to it (package markupsafe).

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func escapeIf(yes bool, s string) string {
	if yes {
		return escapeHTML(s)
	}
	return s
}

// escapeValue escapes the text s of v unless v is markup.
func escapeValue(v Value, s string) string {
	_, ok := v.(markup)
	return escapeIf(!ok, s)
}

func escapeFilter(st *state, v Value) (Value, error) {
	s, err := st.str(v)
	if err == nil {
		err = st.chargeText(len(s))
	}
	return markup(escapeValue(v, s)), err
}

func forceescapeFilter(st *state, v Value) (Value, error) {
	s, err := st.str(v)
	if err == nil {
		err = st.chargeText(len(s))
	}
	return markup(escapeHTML(s)), err
}

func safeFilter(st *state, v Value) (Value, error) {
	s, err := st.str(v)
	return markup(s), err
}

func striptagsFilter(st *state, v Value) (Value, error) {
	s, err := st.str(v)
	if err != nil {
		return nil, err
	}
	for _, tag := range [][2]string{{"<!--", "-->"}, {"<", ">"}} {
		var b strings.Builder
		for {
			i := strings.Index(s, tag[0])
			if i < 0 {
				break
			}
			j := strings.Index(s[i:], tag[1])
			if j < 0 {
				break
			}
			b.WriteString(s[:i])
			s = s[i+j+len(tag[1]):]
		}
		s = b.String() + s
	}
	s = strings.Join(strings.FieldsFunc(s, isSpace), " ")
	return Str(html.UnescapeString(s)), st.chargeText(len(s))
}
