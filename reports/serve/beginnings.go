package serve

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"exp/experiments/store"
	"exp/reports"
)

const (
	beginningShown = 90  // characters of a prompt in a row
	beginningMore  = 600 // characters where the pointer rests on it
	sharedLeast    = 16  // bytes; a shorter shared beginning stays
)

// promptsOf reads a prompt of each problem, from the first completion that a run kept; empty if none did. It reads in
// the order of the packs: each is decompressed once.
func (s *Server) promptsOf(order []string, items map[string][]store.ItemCount) ([]string, error) {
	type place struct {
		row   int
		count store.ItemCount
	}
	var places []place
	for i, item := range order {
		kept := func(c store.ItemCount) bool { return !c.First.Pack.IsZero() }
		if at := slices.IndexFunc(items[item], kept); at >= 0 {
			places = append(places, place{i, items[item][at]})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		x, y := a.count.First, b.count.First
		return cmp.Or(slices.Compare(x.Pack[:], y.Pack[:]), cmp.Compare(x.Off, y.Off))
	})
	packs := s.db.Blobs.NewPackReader()
	defer packs.Close()
	prompts := make([]string, len(order))
	for _, p := range places {
		var kept struct { // the part of a packed record that is read (harness/run writes it)
			Prompt string `json:"prompt"`
		}
		if err := packs.Read(p.count.First, &kept); err != nil {
			return nil, err
		}
		prompts[p.row] = kept.Prompt
	}
	return prompts, nil
}

// sharedBeginning returns how many bytes at the beginning of all prompts are the same, up to the end of a word: a chat
// template and its system message, which tell nothing about a problem. A few shared words count as none.
func sharedBeginning(prompts []string) int {
	var first string
	n, different := 0, false
	for _, p := range prompts {
		switch {
		case p == "":
		case first == "":
			first, n = p, len(p)
		default:
			same := 0
			for same < min(n, len(p)) && p[same] == first[same] {
				same++
			}
			different = different || p != first
			n = same
		}
	}
	if n = strings.LastIndexAny(first[:n], " \n\t") + 1; !different || n < sharedLeast {
		return 0
	}
	return n
}

// beginning returns the beginning of a prompt after skip bytes, on one line and safe to show, and more of it.
func beginning(prompt string, skip int) (short, more string) {
	text := reports.Visible(strings.Join(strings.Fields(prompt[min(skip, len(prompt)):]), " "))
	if skip > 0 && text != "" {
		text = "… " + text
	}
	return cutText(text, beginningShown), cutText(text, beginningMore)
}

// cutText cuts a text after most characters.
func cutText(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
