package task

// A plot is a story about one quantity. Openings give it a value, moves change it, endings change it
// and ask. In sentences, words of the story stand in braces and numbers are letters; see story.numbers.
type plot struct {
	name                     string
	openings, moves, endings []act
	questions                []string // used if no ending asks
}

// act is one or more sentences of a story with the equations that follow from them. The value of an opening
// without equations is a.
type act struct {
	tell  []string // alternative wordings
	lines []line
	on    bool   // the story continues with the friend
	to    string // and with this plot; empty: the same one
}

// line is an equation and the sentence that states its finding, with {=} in place of the equation. The
// equation is over v, the value before the act; x, the previous equation's result; drawn numbers; and
// constants.
type line struct{ equation, finds string }

func plotNamed(name string) *plot {
	for i := range plots {
		if plots[i].name == name {
			return &plots[i]
		}
	}
	panic("task: no plot is called " + name)
}

var plots = []plot{
	{"things", thingsOpenings, thingsMoves, thingsEndings, []string{
		"How many {things} does {name} have now?", "How many {things} does {name} have?",
		"How many {things} does {name} have in the end?",
	}},
	{"money", moneyOpenings, moneyMoves, moneyEndings, []string{
		"How much money does {name} have now?", "How many dollars does {name} have?",
		"How much money does {name} have in the end?",
	}},
	{"price", priceOpenings, priceMoves, priceEndings, []string{
		"How much does {name} pay?", "How much does {name} pay in all?", "What is the total price in dollars?",
	}},
	{"way", wayOpenings, wayMoves, wayEndings, []string{
		"How many miles does {name} travel?", "How many miles does {name} travel in all?",
		"How far does {name} travel?",
	}},
	{"book", bookOpenings, bookMoves, bookEndings, []string{
		"How many pages are left?", "How many pages does {name} still have to read?",
	}},
}

var thingsOpenings = []act{
	{tell: []string{"{name} has {a} {things}.", "{name} found {a} {things}.", "{name} starts with {a} {things}."}},
	{tell: []string{
		"{name} has {k} {boxes} with {a} {things} in each.",
		"{name} buys {k} {boxes} of {things}. Each {box} has {a} {things}.",
		"There are {a} {things} in a {box}, and {name} has {k} {boxes}.",
	}, lines: []line{{"k*a", "{name} has {=} {things}."}}},
	{tell: []string{
		"{name} collects {a} {things} a day for {k} days.", "Every day for {k} days, {name} gets {a} {things}.",
	}, lines: []line{{"a*k", "In {k} days {name} gets {=} {things}."}}},
	{tell: []string{
		"{name} makes {a} {things} every day for a week.", "For a week, {name} collects {a} {things} a day.",
	}, lines: []line{{"a*7", "A week has 7 days, so {name} gets {=} {things}."}}},
	{tell: []string{
		"{name} has {a} {color} {things} and {b} {tint} {things}.",
		"{name} has {a} {things} that are {color} and {b} that are {tint}.",
	}, lines: []line{{"a+b", "{name} has {=} {things}."}}},
	{tell: []string{
		"{name} buys {k} dozen {things}.", "{name} has {k} dozen {things}.",
	}, lines: []line{{"k*12", "A dozen is 12, so {name} has {=} {things}."}}},
	{on: true, tell: []string{
		"{name} has {a} {things}. {friend} has {k} times as many.",
		"{name} has {a} {things}, and {friend} has {k} times as many {things} as {name}.",
	}, lines: []line{{"a*k", "{friend} has {=} {things}."}}},
	{on: true, tell: []string{
		"{name} has {a} {things}. {friend} has twice as many.",
		"{friend} has twice as many {things} as {name}, who has {a}.",
	}, lines: []line{{"a*2", "{friend} has {=} {things}."}}},
	{on: true, tell: []string{
		"{name} has {a} {things}. {friend} has half as many.",
		"{friend} has half as many {things} as {name}, who has {a}.",
	}, lines: []line{{"a/2", "{friend} has {=} {things}."}}},
	{on: true, tell: []string{
		"{name} has {a} {things}. {friend} has {b} more than {name}.",
		"{friend} has {b} more {things} than {name}, who has {a}.",
	}, lines: []line{{"a+b", "{friend} has {=} {things}."}}},
	{on: true, tell: []string{
		"{name} has {a} {things}. {friend} has {b} fewer than {name}.",
		"{friend} has {b} fewer {things} than {name}, who has {a}.",
	}, lines: []line{{"a-b", "{friend} has {=} {things}."}}},
}

var thingsMoves = []act{
	{tell: []string{
		"{They} buys {a} more.", "{They} gets {a} more {things} from {friend}.",
		"{friend} gives {name} {a} {things}.",
		"Then {they} finds another {a} {things}.",
	}, lines: []line{{"v+a", "Then {name} has {=} {things}."}}},
	{tell: []string{
		"{They} loses {a} of them.", "{They} gives {a} {things} to {friend}.", "{They} sells {a} {things}.",
		"{friend} takes {a} of the {things}.",
	}, lines: []line{{"v-a", "Then {name} has {=} {things} left."}}},
	{tell: []string{
		"{They} gives half of them to {friend}.", "{They} gives half of the {things} away.",
		"{They} gives away half of the {things} that {they} has.",
	}, lines: []line{{"v/2", "{name} gives away {=} {things}."}, {"v-x", "That leaves {=} {things}."}}},
	{tell: []string{
		"{They} gives 1/{k} of them to {friend}.", "{They} gives away 1/{k} of the {things}.",
	}, lines: []line{{"v/k", "{name} gives away {=} {things}."}, {"v-x", "That leaves {=} {things}."}}},
	{tell: []string{
		"{They} sells {p}% of them.", "{They} loses {p}% of the {things}.",
	}, lines: []line{{"v/q", "{p}% of the {things} is {=} {things}."}, {"v-x", "That leaves {=} {things}."}}},
	{tell: []string{
		"{They} gives {m} {things} to each of {k} friends.", "{They} gives each of {k} friends {m} {things}.",
	}, lines: []line{{"k*m", "The friends get {=} {things}."}, {"v-x", "Then {name} has {=} {things} left."}}},
	{tell: []string{
		"{They} uses {m} {things} a day for {k} days.", "For {k} days, {they} uses {m} {things} every day.",
	}, lines: []line{{"m*k", "In {k} days {name} uses {=} {things}."},
		{"v-x", "Then {name} has {=} {things} left."}}},
	{tell: []string{
		"{They} buys {k} {boxes} with {m} {things} in each.", "Then {they} gets {k} {boxes} of {m} {things}.",
	}, lines: []line{{"k*m", "In the {boxes} are {=} {things}."}, {"v+x", "Then {name} has {=} {things}."}}},
	{on: true, tell: []string{
		"{friend} has {k} times as many {things} as {name}.",
	}, lines: []line{{"v*k", "{friend} has {=} {things}."}}},
	{on: true, tell: []string{
		"{friend} has {a} more {things} than {name}.",
	}, lines: []line{{"v+a", "{friend} has {=} {things}."}}},
	{on: true, tell: []string{
		"{friend} has {a} fewer {things} than {name}.", "{friend} has {a} {things} less than {name}.",
	}, lines: []line{{"v-a", "{friend} has {=} {things}."}}},
	{to: "money", tell: []string{
		"{They} sells all of them for ${k} each.", "{They} sells the {things} at ${k} each.",
	}, lines: []line{{"v*k", "{name} gets {=} dollars."}}},
}

var thingsEndings = []act{
	{tell: []string{
		"{They} shares them equally among {k} friends. How many {things} does each friend get?",
		"If {they} gives them all to {k} friends, how many {things} does each friend get?",
	}, lines: []line{{"v/k", "Each friend gets {=} {things}."}}},
	{tell: []string{
		"{They} puts {k} {things} in each {box}. How many {boxes} does {they} need?",
		"How many {boxes} does {name} need if {k} {things} go in each {box}?",
	}, lines: []line{{"v/k", "{name} needs {=} {boxes}."}}},
	{tell: []string{
		"{friend} has {a} {things}. How many more {things} does {name} have than {friend}?",
	}, lines: []line{{"v-a", "{name} has {=} {things} more."}}},
	{tell: []string{
		"{They} wants to have {a} {things}. How many more {things} does {they} need?",
		"How many {things} does {name} still need to have {a}?",
	}, lines: []line{{"a-v", "{name} needs {=} {things} more."}}},
	{tell: []string{
		"{friend} has {k} times as many {things} as {name}. How many {things} do they have together?",
	}, lines: []line{{"v*k", "{friend} has {=} {things}."}, {"v+x", "Together they have {=} {things}."}}},
	{tell: []string{
		"{friend} has half as many {things} as {name}. How many {things} do they have together?",
	}, lines: []line{{"v/2", "{friend} has {=} {things}."}, {"v+x", "Together they have {=} {things}."}}},
	{tell: []string{
		"{friend} has {a} more {things} than {name}. How many {things} do they have together?",
	}, lines: []line{{"v+a", "{friend} has {=} {things}."}, {"v+x", "Together they have {=} {things}."}}},
	{tell: []string{
		"{friend} has {a} fewer {things} than {name}. How many {things} do they have in all?",
	}, lines: []line{{"v-a", "{friend} has {=} {things}."}, {"v+x", "Together they have {=} {things}."}}},
}

var moneyOpenings = []act{
	{tell: []string{"{name} has ${a}.", "{name} has {a} dollars.", "{name} got ${a} from {friend}."}},
	{tell: []string{
		"{name} earns ${a} an hour and works {k} hours.", "{name} works {k} hours for ${a} an hour.",
	}, lines: []line{{"a*k", "{name} earns {=} dollars."}}},
	{tell: []string{
		"{name} works {m} hours a day for {k} days and earns ${a} an hour.",
	}, lines: []line{{"m*k", "{name} works {=} hours."}, {"x*a", "{name} earns {=} dollars."}}},
	{tell: []string{
		"{name} saves ${a} a week for {k} weeks.", "Every week for {k} weeks, {name} saves ${a}.",
	}, lines: []line{{"a*k", "{name} saves {=} dollars."}}},
	{tell: []string{
		"{name} sells {a} {goods} for ${k} each.",
		"{name} sells {goods} at ${k} each. Today {they} sold {a} of them.",
	}, lines: []line{{"a*k", "{name} gets {=} dollars."}}},
}

var moneyMoves = []act{
	{tell: []string{
		"{They} gets ${a} from {friend}.", "{friend} gives {name} another ${a}.", "Then {they} earns ${a} more.",
	}, lines: []line{{"v+a", "Then {name} has {=} dollars."}}},
	{tell: []string{
		"{They} spends ${a} on a {good}.", "{They} buys a {good} for ${a}.", "{They} pays {friend} ${a}.",
	}, lines: []line{{"v-a", "Then {name} has {=} dollars left."}}},
	{tell: []string{
		"{They} spends half of the money.", "{They} spends half of it on a {good}.",
	}, lines: []line{{"v/2", "{name} spends {=} dollars."}, {"v-x", "That leaves {=} dollars."}}},
	{tell: []string{
		"{They} spends 1/{k} of the money on a {good}.", "{They} gives 1/{k} of it to {friend}.",
	}, lines: []line{{"v/k", "{name} spends {=} dollars."}, {"v-x", "That leaves {=} dollars."}}},
	{tell: []string{
		"{They} spends {p}% of the money.", "{They} gives {p}% of it to {friend}.",
	}, lines: []line{{"v/q", "{p}% of the money is {=} dollars."}, {"v-x", "That leaves {=} dollars."}}},
	{tell: []string{
		"{They} buys {k} {goods} for ${m} each.", "{They} pays ${m} each for {k} {goods}.",
	}, lines: []line{{"k*m", "The {goods} cost {=} dollars."}, {"v-x", "Then {name} has {=} dollars left."}}},
	{tell: []string{
		"{They} works {k} hours for ${m} an hour.", "Then {they} earns ${m} an hour for {k} hours.",
	}, lines: []line{{"k*m", "{name} earns {=} dollars."}, {"v+x", "Then {name} has {=} dollars."}}},
	{on: true, tell: []string{
		"{friend} has {k} times as much money as {name}.", "{friend} has {k} times as much.",
	}, lines: []line{{"v*k", "{friend} has {=} dollars."}}},
	{on: true, tell: []string{"{friend} has ${a} more than {name}."},
		lines: []line{{"v+a", "{friend} has {=} dollars."}}},
}

var moneyEndings = []act{
	{tell: []string{
		"A {good} costs ${a}. How much more money does {name} need to buy it?",
		"{They} wants a {good} that costs ${a}. How many more dollars does {they} need?",
	}, lines: []line{{"a-v", "{name} needs {=} dollars more."}}},
	{tell: []string{
		"A {good} costs ${k}. How many {goods} can {name} buy?", "How many {goods} can {they} buy for ${k} each?",
	}, lines: []line{{"v/k", "{name} can buy {=} {goods}."}}},
	{tell: []string{
		"{They} shares it equally among {k} friends. How much does each friend get?",
	}, lines: []line{{"v/k", "Each friend gets {=} dollars."}}},
	{tell: []string{
		"{friend} has half as much money. How much do they have together?",
	}, lines: []line{{"v/2", "{friend} has {=} dollars."}, {"v+x", "Together they have {=} dollars."}}},
	{tell: []string{
		"{friend} has ${a} less. How much money do they have together?",
	}, lines: []line{{"v-a", "{friend} has {=} dollars."}, {"v+x", "Together they have {=} dollars."}}},
}

var priceOpenings = []act{
	{tell: []string{"{name} wants to buy a {good} for ${a}.", "{name} buys a {good} that costs ${a}."}},
	{tell: []string{
		"{name} buys {k} {goods} for ${a} each.", "A {good} costs ${a}, and {name} buys {k} of them.",
	}, lines: []line{{"k*a", "The {goods} cost {=} dollars."}}},
	{tell: []string{
		"{name} buys a {good} for ${a} and a {item} for ${b}.",
		"A {good} costs ${a} and a {item} costs ${b}. {name} buys both.",
	}, lines: []line{{"a+b", "That costs {=} dollars."}}},
	{tell: []string{
		"A {good} costs ${a}. A {item} costs {k} times as much, and {name} buys one.",
	}, lines: []line{{"a*k", "The {item} costs {=} dollars."}}},
	{tell: []string{
		"{name} buys {k} {goods} for ${m} each and a {item} for ${a}.",
		"A {good} costs ${m} and a {item} ${a}. {name} buys {k} {goods} and one {item}.",
	}, lines: []line{{"k*m", "The {goods} cost {=} dollars."}, {"a+x", "In all that costs {=} dollars."}}},
}

var priceMoves = []act{
	{tell: []string{
		"{They} gets {p}% off.", "There is a discount of {p}%.",
	}, lines: []line{{"v/q", "The discount is {=} dollars."}, {"v-x", "The price is {=} dollars."}}},
	{tell: []string{
		"{They} has a coupon for ${a} off.", "{friend} pays ${a} of it.",
	}, lines: []line{{"v-a", "Then {name} pays {=} dollars."}}},
	{tell: []string{
		"Shipping costs another ${a}.", "{They} also buys a {item} for ${a}.", "{They} adds a tip of ${a}.",
	}, lines: []line{{"v+a", "With that it is {=} dollars."}}},
	{tell: []string{
		"{They} also buys {k} {items} for ${m} each.", "{They} takes {k} {items} at ${m} each, too.",
	}, lines: []line{{"k*m", "The {items} cost {=} dollars."}, {"v+x", "With that it is {=} dollars."}}},
}

var priceEndings = []act{
	{tell: []string{
		"{They} pays with a ${n} bill. How much change does {they} get?",
		"How much change does {name} get from ${n}?",
	}, lines: []line{{"n-v", "{name} gets {=} dollars back."}}},
	{tell: []string{
		"{They} has ${a}. How much money is left?",
	}, lines: []line{{"a-v", "That leaves {=} dollars."}}},
	{tell: []string{
		"{k} friends share the price equally. How much does each friend pay?",
	}, lines: []line{{"v/k", "Each friend pays {=} dollars."}}},
	{tell: []string{
		"{They} saves ${k} a week. How many weeks does {they} need?",
	}, lines: []line{{"v/k", "{name} needs {=} weeks."}}},
}

var wayOpenings = []act{
	{tell: []string{
		"{name} drives for {k} hours at {a} miles an hour.", "{name} drives {a} miles an hour for {k} hours.",
	}, lines: []line{{"k*a", "{name} drives {=} miles."}}},
	{tell: []string{
		"{name} runs {a} miles every day for {k} days.", "{name} walks {a} miles a day for {k} days.",
	}, lines: []line{{"a*k", "In {k} days that is {=} miles."}}},
	{tell: []string{
		"{name} rides {a} miles on Monday and {b} miles on Tuesday.",
		"{name} rides {a} miles, then another {b} miles.",
	}, lines: []line{{"a+b", "{name} rides {=} miles."}}},
	{tell: []string{
		"{name} walks {a} miles on Monday and {k} times as far on Tuesday.",
	}, lines: []line{{"a*k", "On Tuesday {name} walks {=} miles."}, {"a+x", "In both days that is {=} miles."}}},
}

var wayMoves = []act{
	{tell: []string{
		"Then {they} goes {a} miles more.", "After lunch {they} travels another {a} miles.",
	}, lines: []line{{"v+a", "With that it is {=} miles."}}},
	{tell: []string{
		"Then {they} goes the same way back.", "{They} does the same again the next day.",
	}, lines: []line{{"v*2", "Twice the way is {=} miles."}}},
	{tell: []string{
		"Then {they} goes by bike for {k} hours at {m} miles an hour.",
	}, lines: []line{{"k*m", "By bike that is {=} miles."}, {"v+x", "With that it is {=} miles."}}},
	{on: true, tell: []string{
		"{friend} travels {a} miles less than {name}.",
	}, lines: []line{{"v-a", "{friend} travels {=} miles."}}},
}

var wayEndings = []act{
	{tell: []string{
		"The whole way has {a} miles. How many miles are left?",
		"{They} wants to travel {a} miles. How many miles are left?",
	}, lines: []line{{"a-v", "That leaves {=} miles."}}},
	{tell: []string{
		"The car needs a gallon for {k} miles. How many gallons does {name} need?",
	}, lines: []line{{"v/k", "{name} needs {=} gallons."}}},
	{tell: []string{
		"{friend} goes the same way at {k} miles an hour. How many hours does {friend} need?",
	}, lines: []line{{"v/k", "{friend} needs {=} hours."}}},
}

var bookOpenings = []act{
	{tell: []string{
		"A book has {a} pages. {name} reads {m} pages a day for {k} days.",
		"{name} reads {m} pages of a book every day for {k} days. The book has {a} pages.",
	}, lines: []line{{"m*k", "{name} reads {=} pages."}, {"a-x", "That leaves {=} pages."}}},
	{tell: []string{
		"A book has {a} pages. {name} reads {b} pages on Monday and {c} pages on Tuesday.",
	}, lines: []line{{"b+c", "{name} reads {=} pages."}, {"a-x", "That leaves {=} pages."}}},
	{tell: []string{
		"{name} has read {p}% of a book of {a} pages.", "A book has {a} pages, and {name} has read {p}% of them.",
	}, lines: []line{{"a/q", "{name} has read {=} pages."}, {"a-x", "That leaves {=} pages."}}},
	{tell: []string{
		"{name} has read {b} of the {a} pages of a book.",
	}, lines: []line{{"a-b", "That leaves {=} pages."}}},
	{tell: []string{
		"A book has {k} parts of {a} pages, and {name} reads it.",
	}, lines: []line{{"k*a", "The book has {=} pages."}}},
}

var bookMoves = []act{
	{tell: []string{
		"Then {they} reads {a} more pages.", "In the evening {they} reads {a} pages.",
	}, lines: []line{{"v-a", "That leaves {=} pages."}}},
	{tell: []string{
		"Then {they} reads half of the rest.",
	}, lines: []line{{"v/2", "{name} reads {=} pages."}, {"v-x", "That leaves {=} pages."}}},
	{tell: []string{
		"Then {they} reads {m} pages an hour for {k} hours.",
	}, lines: []line{{"m*k", "{name} reads {=} pages."}, {"v-x", "That leaves {=} pages."}}},
}

var bookEndings = []act{
	{tell: []string{
		"{They} wants to read the rest in {k} days. How many pages a day is that?",
	}, lines: []line{{"v/k", "{name} reads {=} pages a day."}}},
	{tell: []string{
		"{They} reads {k} pages an hour. How many hours does {they} need for the rest?",
	}, lines: []line{{"v/k", "{name} needs {=} hours."}}},
}
