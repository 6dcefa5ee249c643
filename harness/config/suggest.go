package config

import (
	"slices"
	"strings"

	"exp/experiments/spelling"
)

// enumerate joins at most n words with commas.
func enumerate(words []string, n int) string {
	if len(words) > n {
		return strings.Join(words[:n], ", ") + ", ..."
	}
	return strings.Join(words, ", ")
}

// didYouMean returns help for an unknown key name in a block: a sibling, else keys
// elsewhere. It also returns the suggested path.
func didYouMean(g *group, name, path string, full bool) (help, suggested string) {
	join := func(name string) string {
		if g.path == "" {
			return name
		}
		return g.path + "." + name
	}
	show := func(name string) string {
		if full {
			return join(name)
		}
		return name
	}
	here := ""
	if g.path != "" || !full {
		here = "keys here: " + enumerate(g.names, 14)
	}
	if near := spelling.Nearest(name, g.names); near != "" {
		help = `did you mean "` + show(near) + `"?`
		if !full {
			help += " " + here
		}
		return help, join(near)
	}
	if paths := elsewhere(name, path); len(paths) > 0 {
		return `did you mean "` + strings.Join(paths, `" or "`) + `"?`, paths[0]
	}
	return here, ""
}

// elsewhere finds keys and blocks in other blocks: at most five with the same name, only those deeper in the block of
// the path if there are any, else the path nearest to the given one.
func elsewhere(name, path string) []string {
	all := append(paths(), blocks()...)
	if same := deeper(path); len(same) > 0 {
		return same
	}
	var same []string
	for _, p := range all {
		if _, last := cutLast(p); last != name {
			continue
		}
		if strings.HasPrefix(p, "train.") { // what people mean most
			same = slices.Insert(same, 0, p)
		} else {
			same = append(same, p)
		}
	}
	if len(same) > 0 {
		return same[:min(len(same), 5)]
	}
	if near := spelling.Nearest(path, all); near != "" {
		return []string{near}
	}
	return nil
}

// deeper finds keys and blocks of the same name as path, in its block or deeper: train.optim.lr for train.lr. At most
// five.
func deeper(path string) (same []string) {
	block, name := cutLast(path)
	for _, p := range append(paths(), blocks()...) {
		if _, last := cutLast(p); last == name && block != "" && strings.HasPrefix(p, block+".") && len(same) < 5 {
			same = append(same, p)
		}
	}
	return same
}
