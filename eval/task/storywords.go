package task

import (
	"slices"
	"strings"
)

// The vocabulary of the stories. Changing a list changes every generated problem.

var storyPeople = []person{
	{"Adam", "He"}, {"Alice", "She"}, {"Amir", "He"}, {"Anna", "She"}, {"Boris", "He"}, {"Carla", "She"},
	{"Daniel", "He"}, {"Diana", "She"},
	{"Emil", "He"}, {"Emma", "She"}, {"Felix", "He"}, {"Grace", "She"}, {"Hugo", "He"}, {"Irene", "She"},
	{"Jack", "He"}, {"Julia", "She"},
	{"Karim", "He"}, {"Kate", "She"}, {"Liam", "He"}, {"Lucy", "She"}, {"Marco", "He"}, {"Maria", "She"},
	{"Nick", "He"}, {"Nora", "She"},
	{"Omar", "He"}, {"Olga", "She"}, {"Paul", "He"}, {"Rosa", "She"}, {"Simon", "He"}, {"Sara", "She"}, {"Tim", "He"},
	{"Wanda", "She"},
}

// noun has the forms of a word.
type noun struct{ one, many string }

var storyThings = []string{
	"apples", "pears", "lemons", "plums", "cookies", "muffins", "eggs", "candies", "marbles", "beads",
	"shells", "stones",
	"coins", "stamps", "cards", "stickers", "pencils", "pens", "buttons", "balloons", "flowers", "tulips",
	"photos", "toys",
}

var storyBoxes = []noun{{"box", "boxes"}, {"bag", "bags"}, {"jar", "jars"}, {"basket", "baskets"}, {"pack", "packs"}}

var storyColors = []string{"red", "blue", "green", "yellow", "white", "black"}

var storyGoods = []noun{
	{"book", "books"}, {"shirt", "shirts"}, {"hat", "hats"}, {"lamp", "lamps"}, {"cake", "cakes"}, {"ball", "balls"},
	{"ticket", "tickets"}, {"game", "games"}, {"cup", "cups"}, {"plant", "plants"}, {"scarf", "scarves"},
	{"puzzle", "puzzles"},
}

// Alphabet has the characters that stories use.
func (t *stories) Alphabet() string {
	var b strings.Builder
	b.WriteString("0123456789=#\n ")
	for _, p := range storyPeople {
		b.WriteString(p.name + p.pronoun)
	}
	for _, n := range slices.Concat(storyBoxes, storyGoods) {
		b.WriteString(n.one + n.many)
	}
	for _, s := range slices.Concat(storyThings, storyColors) {
		b.WriteString(s)
	}
	for _, p := range plots {
		for _, a := range slices.Concat(p.openings, p.moves, p.endings) {
			b.WriteString(strings.Join(a.tell, ""))
			for _, l := range a.lines {
				b.WriteString(l.equation + l.finds)
			}
		}
		b.WriteString(strings.Join(p.questions, ""))
	}
	runes := []rune(strings.ToLower(b.String()) + strings.NewReplacer("{", "", "}", "").Replace(b.String()))
	runes = slices.DeleteFunc(runes, func(r rune) bool { return r == '{' || r == '}' })
	slices.Sort(runes)
	return string(slices.Compact(runes))
}
