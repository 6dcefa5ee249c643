package config

import (
	"math"
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
	here := ""
	if g.path != "" || !full {
		here = "keys here: " + enumerate(g.names, 14)
	}
	if near := siblings(name, g.names); len(near) > 0 {
		suggested = join(near[0])
		if !full {
			return anyOf(near) + " " + here, suggested
		}
		for i := range near {
			near[i] = join(near[i])
		}
		return anyOf(near), suggested
	}
	if paths := elsewhere(name, path); len(paths) > 0 {
		return anyOf(paths), paths[0]
	}
	return here, ""
}

// anyOf asks whether one of the keys was meant.
func anyOf(keys []string) string { return `did you mean "` + strings.Join(keys, `" or "`) + `"?` }

// siblings finds the names that an unknown one may stand for: the nearest, but names with all its words, as
// max_new_tokens has those of max_tokens, before one that differs by more than one edit.
func siblings(name string, names []string) []string {
	near := spelling.Nearest(name, names)
	if d, _ := spelling.Near(name, near); near != "" && d <= 1 {
		return []string{near}
	}
	if all := withWords(name, names); len(all) > 0 || near == "" {
		return all
	}
	return []string{near}
}

// withWords finds the names that have all words of name, at most five.
func withWords(name string, names []string) (all []string) {
	words := strings.Split(strings.ToLower(name), "_")
	for _, n := range names {
		has := strings.Split(n, "_")
		lacks := func(word string) bool { return !slices.Contains(has, word) }
		if !slices.ContainsFunc(words, lacks) && len(all) < 5 {
			all = append(all, n)
		}
	}
	return all
}

// nearestPath returns the path whose parts are spelt most nearly as those of the given one, or the whole within two
// edits, as after a forgotten dot, with the number of edits; or "".
func nearestPath(path string, all []string) (best string, edits int) {
	edits = math.MaxInt
	for _, p := range all {
		if d, ok := nearParts(strings.Split(path, "."), strings.Split(p, ".")); ok && d < edits {
			best, edits = p, d
		}
		if d, ok := spelling.Near(path, p); ok && d <= 2 && d < edits {
			best, edits = p, d
		}
	}
	return best, edits
}

// nearParts sums the edits of parts that are each near enough.
func nearParts(parts, others []string) (sum int, ok bool) {
	if len(parts) != len(others) {
		return 0, false
	}
	for i, part := range parts {
		if part == others[i] {
			continue
		}
		d, ok := spelling.Near(part, others[i])
		if !ok {
			return 0, false
		}
		sum += d
	}
	return sum, true
}

// elsewhere finds keys and blocks in other blocks: the key that path ends with, else at most five with the same name,
// only those deeper in the block of the path if there are any, else the path nearest to the given one.
func elsewhere(name, path string) []string {
	all := append(paths(), blocks()...)
	if same := deeper(path); len(same) > 0 {
		return same
	}
	var same []string
	for _, p := range all {
		if strings.Contains(p, ".") && strings.HasSuffix(path, "."+p) {
			return []string{p}
		}
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
	if near, _ := nearestPath(path, all); near != "" {
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
