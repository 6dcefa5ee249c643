package form

import (
	"fmt"
	"math/bits"
	"slices"
)

// array returns arrays that follow keywords.
func (x *schemaReader) array(words []part) (expr, error) {
	least, most, err := between(words, "minItems", "maxItems")
	if err != nil {
		return nil, err
	}
	if most >= 0 && least > most {
		return never, nil
	}
	firsts, unique := 0, part{}
	for _, p := range words {
		switch list, isList := p.value().([]any); p.word {
		case "prefixItems":
			if !isList {
				return nil, fmt.Errorf("%s must be a list", p.where())
			}
			firsts = max(firsts, len(list))
		case "items":
			if isList {
				return nil, fmt.Errorf("%s is a list: prefixItems has those", p.where())
			}
		case "uniqueItems":
			if p.value() == true {
				unique = p
			}
		}
	}
	if most >= 0 {
		firsts = min(firsts, most)
	}
	if unique.word != "" && most != 0 && most != 1 {
		return x.unique(unique, words, firsts, least, most)
	}
	var first []expr
	for i := range firsts {
		e, err := x.all(itemParts(words, i)...)
		if err != nil {
			return nil, err
		}
		first = append(first, e)
	}
	item, err := x.all(itemParts(words, firsts)...)
	if err != nil {
		return nil, err
	}
	return x.items(first, item, least, most), nil
}

// between returns the least and the most of something that keywords count; most is -1 without a limit.
func between(words []part, min, max string) (least, most int, err error) {
	most = -1
	for _, p := range words {
		if p.word != min && p.word != max {
			continue
		}
		n, err := p.count()
		if err != nil {
			return 0, 0, err
		}
		if p.word == min && int(n) > least {
			least = int(n)
		} else if p.word == max && (most < 0 || int(n) < most) {
			most = int(n)
		}
	}
	return least, most, nil
}

// itemParts returns what item i of an array follows.
func itemParts(words []part, i int) (list []part) {
	for _, p := range words {
		first, _ := p.get("prefixItems")
		own, _ := first.([]any)
		switch {
		case p.word == "prefixItems" && i < len(own):
			list = append(list, p.item(own[i], i))
		case p.word == "items" && i >= len(own):
			list = append(list, p.sub("items"))
		}
	}
	return list
}

// items stands for arrays of least to most items; the first ones have their own schemas.
func (x *schemaReader) items(first []expr, item expr, least, most int) expr {
	if len(first) == 0 && (most < 0 || least <= most) {
		return x.json.list("[", "]", item, least, most)
	}
	return func(g *grammar, from, to node) {
		at, end := g.node(), g.node()
		text("[")(g, from, at)
		seq(x.json.space, text("]"))(g, end, to)
		if least == 0 {
			text("]")(g, at, to)
		}
		for n := 0; n != most && !g.large; n++ {
			next, e, before := g.node(), item, x.json.comma()
			if n < len(first) {
				e = first[n]
			}
			if n == 0 {
				before = x.json.space
			}
			seq(before, e)(g, at, next)
			if n+1 >= least {
				g.skip(next, end)
			}
			at = next
			if most < 0 && n+1 >= max(least, len(first)) {
				star(seq(x.json.comma(), item))(g, at, end)
				return
			}
		}
	}
}

// mostUnique bounds the values of unique items: an array remembers which ones it has.
const mostUnique = 10

// unique returns arrays of different items, which have few values.
func (x *schemaReader) unique(p part, words []part, firsts, least, most int) (expr, error) {
	var all []any
	fit := make([]uint, firsts+1) // by item: which values it may have; the last is for all further ones
	for i := range fit {
		list, ok, err := x.domain(itemParts(words, i))
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			k := slices.IndexFunc(all, func(o any) bool { return equal(o, v) })
			if k < 0 {
				k, all = len(all), append(all, v)
			}
			if k < mostUnique {
				fit[i] |= 1 << k
			}
		}
		if !ok || len(all) > mostUnique {
			return nil, fmt.Errorf("%s is supported for items of at most %d values, such as those of an enum, and "+
				"for arrays of one item", p.where(), mostUnique)
		}
	}
	values := make([]expr, len(all))
	for i, v := range all {
		values[i] = x.json.valueOf(v)
	}
	return func(g *grammar, from, to node) {
		end := g.node()
		seq(x.json.space, text("]"))(g, end, to)
		places := map[uint]node{0: g.node()}
		text("[")(g, from, places[0])
		if least == 0 {
			text("]")(g, places[0], to)
		}
		left := []uint{0}
		for ; len(left) > 0 && !g.large; left = left[1:] {
			used := left[0]
			n := bits.OnesCount(used)
			if n >= max(1, least) {
				g.skip(places[used], end)
			}
			if n == most {
				continue
			}
			before := x.json.comma()
			if n == 0 {
				before = x.json.space
			}
			for i, value := range values {
				next := used | 1<<i
				if next == used || fit[min(n, firsts)]>>i&1 == 0 {
					continue
				}
				if _, ok := places[next]; !ok {
					places[next], left = g.node(), append(left, next)
				}
				seq(before, value)(g, places[used], places[next])
			}
		}
	}, nil
}

// domain returns the values that follow parts; ok is false if they are not known to be few.
func (x *schemaReader) domain(parts []part) (list []any, ok bool, err error) {
	options, err := x.options(parts...)
	if err != nil {
		return nil, false, err
	}
	for _, c := range options {
		f, err := x.facts(c)
		if err != nil {
			return nil, false, err
		}
		values := f.listed
		if !f.list {
			if f.kinds&^(aBoolean|aNull) != 0 {
				return nil, false, nil
			}
			values = []any{true, false, nil}
		}
		fit, err := x.among(c, values)
		if err != nil {
			return nil, false, err
		}
		list = append(list, fit...)
	}
	return list, true, nil
}
