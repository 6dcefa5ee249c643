package task

// Vocabulary of the word problems. {name} and {They} stand for the person, {things} for the objects, {n}
// for the number. Changing a list changes every generated problem.

type person struct{ name, pronoun string }

var people = []person{
	{"Tom", "He"}, {"Ann", "She"}, {"Ben", "He"}, {"Eva", "She"}, {"Max", "He"},
	{"Mia", "She"}, {"Sam", "He"}, {"Zoe", "She"}, {"Leo", "He"}, {"Ida", "She"},
}

var things = []string{
	"pens", "eggs", "cards", "books", "coins", "shells", "apples", "stamps", "beads", "nuts",
}

var openings = []string{
	"{name} has {n} {things}.",
	"{name} owns {n} {things}.",
	"{name} starts with {n} {things}.",
}

var questions = []string{
	"How many {things}?",
	"How many {things} now?",
	"How many {things} are left with {name}?",
}

// wordsOp is an operation and the sentences for it.
type wordsOp struct {
	op        byte
	sentences []string
}

var wordsOps = []wordsOp{
	{'+', []string{
		"{They} buys {n} more.",
		"{They} gets {n} more.",
		"{They} finds {n}.",
		"A friend gives {name} {n}.",
	}},
	{'-', []string{
		"{They} loses {n}.",
		"{They} sells {n}.",
		"{They} gives away {n}.",
		"A friend takes {n}.",
	}},
	{'*', []string{
		"Then {name} has {n} times as many.",
		"{name} ends up with {n} times as many.",
		"{They} swaps each for {n}.",
	}},
	{'/', []string{
		"{They} puts them in {n} equal bags and keeps one bag.",
		"{They} shares them equally among {n} and keeps one share.",
		"{They} swaps every {n} for one.",
	}},
}
