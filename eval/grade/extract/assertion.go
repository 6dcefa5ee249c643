package extract

import (
	"strings"

	"exp/eval/grade/wording"
)

// Whether a sentence asserts its value.
//
// Nothing marks the answer of a response that ends in plain words. Its last sentence must make the value the answer
// by its grammar, or the response has no answer. The value counts if all of this holds:
//
//  1. Mood: the sentence states a fact. It does not ask, command, plan or suppose. "Let x be 12", "We need to
//     subtract 12", "It remains to show that x = 12" and "For x = 12 we get a contradiction" state none.
//  2. Speaker: the writer vouches for the value. A hedge, a guess, a refusal, or words of others do not.
//  3. Place: the value comes at the end of the work. What was given, a case, or a stage on the way does not.
//  4. One value: the sentence gives one value, or says which of several it means.
//  5. Rest: what follows the value, in its sentence or after it, neither takes it back nor announces more work.
//
// A sentence that leads to a consequence is judged by the consequence: "Let x = 3, so the sum is 7" asserts 7.
// asserts decides 1 to 3 and the sentence's part of 5, leavesIt the rest of 5; reduce decides 4.

// consequent matches words that introduce a consequence, or oppose a value to one that is not meant.
var consequent = lazy(`(?:[;:→]|, (?:this|that|it|which) (?:is|gives|makes|means|leaves|yields)) | (?:so|thus|hence|therefore|giving|yielding|leaving|making|gives us|yields|to get|to obtain|to find that|` +
	`(?:we|you) (?:get|obtain|find|have|conclude|arrive at)|and (?:get|obtain|find)|it follows that|for an? [a-z]+ of|` +
	`but (?:in fact|rather|it is)) `)

// connective matches words before a sentence that join it to the one before, or vouch for it.
var connective = lazy(`^(?:(?:so|thus|hence|therefore|then|and|but|now|next|finally|ok|okay|alright|well|hmm+|yes|also|` +
	`first|again|here|however|instead|to (?:sum up|conclude|summari[sz]e)|putting (?:it|this|that|everything)(?: all)? together|` +
	`(?:i|we)(?: can| have| therefore| thus| then)? (?:have|see|find|found|conclude|deduce|show|shown|proved|established|(?:am|are) (?:confident|sure|certain)) that)` +
	`(?:[,.:]? +|[,.:]$)|["'*_(>-]+ *)+`)

var (
	// working matches the start of a sentence that commands, plans or supposes.
	working = lazy(`^(?:(?:let|say|let's|suppos(?:e|ing)|assum(?:e|ing)|consider|recall|remember|note|notice|observe|imagine|` +
		`take|try|trying|put|plug|insert|substitute|use|start|begin|continue|test|testing|verify|look|compare|proceed|pretend|` +
		`without loss|tell|please|feel|to [a-z]+|presumably|perhaps|maybe|possibly|probably|unless|` +
		`it (?:remains|suffices|is (?:enough|unclear|not clear))|(?:some|many|most|other) (?:people|students)|someone|somebody|` +
		`one (?:might|may|could|would)|(?:the|our|my|one|an?) (?:(?:next|first|main|common|frequent|typical|usual) )?` +
		`(?:goal|aim|plan|idea|task|step|problem|question|exercise|textbook|book|author|strategy|approach|mistake|error|trap)` +
		`(?: here| now)? (?:(?:is|was|would be) to|asks|wants|says|states|gives|claims|tells))\b|unless )`)
	// person matches a sentence about the writer, and its first verb.
	person = lazy(`^(?:i|we)(?:'(?:ll|ve|re|d|m))?\b(?: (?:therefore|thus|hence|then|now|also|finally|just|simply|can|have|will|` +
		`are|only|must|now))* ?([a-z']*)`)
	// reached matches verbs of such a sentence that state a result, or deny one.
	reached = lazy(`^(?:|g[eo]t|had|find|found|obtain(?:ed)?|see|conclude|arrived?|end|ended|reach(?:ed)?|deduced?|` +
		`derived?|choose|chose|select(?:ed)?|pick|take|count(?:ed)?|left|done|say|answer|spend|pay|buy|make|expect|` +
		`need|an?|the|exactly|seen|shown|established|determined?|computed?|calculated?|believe|think|reject|exclude|discard|rule)$`)
	// staged matches words that place a value before the end of the work.
	staged = lazy(`\b(?:so far\b[^a-z=]* [a-z]|(?:if|when) (?:you|one|we|i) (?:forget|ignore|skip|overlook)|as (?:stated|given) in|up to (?:now|here)\b|for now\b|at this (?:point|stage)\b|before the (?:last|final|next) step|case [0-9ivx]+[:.,])`)
	// pending matches words that announce work, wherever they stand after a subject.
	pending = lazy(`\b(?:(?:needs?|wants?|try|trying|tried|have|has|going|like|hope|plan|asked|required|remains|left) to ` +
		`(?:be )?(?:find|found|show|shown|prove|proved|check|checked|know|verify|verified|determine|determined|compute|computed|decide|subtract|` +
		`divide|multiply|remove|account|exclude|include|consider|calculate|start|stop|substitute|confirm|justify)|` +
		`(?:we|i) must (?:also |still |now )?(?:find|show|prove|check|compute|subtract|divide|add|remove|account|exclude|include)|` +
		`(?:and|but) (?:we|i) (?:still |now )?(?:need|want|must|have)|next step|(?:was|were|is|are) given(?: in| at| that|[.]|$))\b`)
	// unvouched matches words by which the writer does not answer for a value.
	unvouched = lazy(`\b(?:presumably|supposedly|allegedly|seems? (?:that|to|like|plausible)|appears (?:that|to)|looks (?:like|plausible)|` +
		`(?:a|my|best|wild|rough) guess|guessing|unable to|not able to|(?:i|we|one) (?:could|can|did)(?: not|n't|not) (?:reproduce|confirm|verify|finish|` +
		`solve|complete|evaluate|determine|compute|continue|justify|conclude|decide|tell|say|be sure|trust|know|find|give|provide|` +
		`access|view|help|answer|calculate|go on)|(?:do not|don't) (?:know|trust)|` +
		`can only (?:assume|guess)|breaks? down|have to stop|i (?:will |'ll )?(?:stop|give up)|gets? (?:messy|complicated|too)|` +
		`is missing|only if|would be the answer|perhaps|maybe|claim(?:s|ed) (?:that )?[0-9$\x01]|what (?:one|you) gets?|` +
		`(?:does|do|did)(?: not|n't) (?:make sense|add up)|is too (?:many|few|much|large|small|big|high|low)|` +
		`(?:says?|said|thinks|believes|wrote|would (?:say|write|get|answer|think)|(?:may|might|could)(?: well)? (?:be|have|say|equal)|` +
		`might) |tempting|probably|possibly|(?:not enough|insufficient|no) information|one of which|the ones (?:we|that)|could (?:work|be)|as an ai)\b`)
	// infinitive matches a value under an infinitive that a copula or a duty governs: the next thing is to divide 12.
	infinitive = lazy(`\b(?:(?:is|was|be)(?: [a-z]+)? to (?:[a-z]+)|(?:we|i) (?:now |still )?(?:need|want|have) to [a-z]+) `)
	// evaluated matches words about a value rather than with it: $x = 3$ leads to a contradiction.
	evaluated = lazy(`\x01,? (?:(?:leads?|makes?|violates?|vanish(?:es)?|fails?|would|there|both|is one of|is (?:wrong|incorrect|too))\b)|` +
		`(?:[0-9]|\x01)(?: [a-z]+)? (?:is|are|would be|was)(?: [a-z]+)? (?:wrong|incorrect|too|not (?:possible|right|correct|valid|the)|impossible|rejected|extraneous)\b|,? (?:is|are) rejected\b`)
	// either matches two values of one kind.
	either = lazy(`[0-9](?: [a-z]+)? or [0-9]`)
	// fronted matches a clause at the start of a sentence, up to its main clause, ofCondition one that sets a
	// condition.
	fronted = lazy(`^(?:(?:for|when|whenever|if|in (?:the )?case|with|from|unless|once|at|by|before|after|given|starting|substituting|because|since|as|assuming|supposing)\b` +
		`(?:[^,]*, |[^,]*? (?:we|i|there|it)\b)|to [^,]*, )`)
	ofCondition = lazy(`^(?:for|when|whenever|if|in (?:the )?case|given|substituting|with|from|unless|once|at|starting|assuming|supposing)\b`)
)

// ordinary matches an infinitive that belongs to the matter of the question or to the verb.
var ordinary = lazy(` to (?:be|buy|have|make|order|pay|save|sell|score|bring|collect|walk|drive|get|reach|equal|find that) `)

// plain returns a sentence in lower case, its formulas as single signs.
func plain(s string) string {
	return strings.TrimSpace(strings.NewReplacer("’", "'", "if and only if", "iff").Replace(wording.Lower(masked(s))))
}

// valued reports whether a text in the form of plain has a value.
func valued(s string) bool { return strings.Contains(s, "\x01") || hasValue(s) }

// conclusionOf returns what a sentence in the form of plain concludes: the part after the last words that introduce a
// consequence and have a value after them.
func conclusionOf(t string) string {
	list := consequent.FindAllStringIndex(t, -1)
	for i := len(list) - 1; i >= 0; i-- {
		if rest := t[list[i][1]:]; valued(rest) {
			return rest
		}
	}
	return t
}

// declined matches the start of a sentence that gives no answer: Skipping this; 42.
var declined = lazy(`^(?:(?:i |i'm |i am |i'll |i will |we )?(?:skip(?:ping|ped)?|pass(?:ing)?|abstain(?:ing)?)` +
	`(?: on)?(?: (?:this|it|that)(?: (?:one|problem|question))?| the (?:problem|question))?|(?:there is )?no (?:final )?answer(?: given| from me)?|` +
	`(?:i |we )give up|i (?:do not|don't) know)(?:[.;:!,—–]|$)`)

// tag matches the question after a value that asks for agreement: It must be 42, right?
var tag = lazy(`^([^?]*[0-9$)][^?,]*), (?:right|correct|no|yes|ok(?:ay)?|isn't it)\?$`)

// asserts reports whether a sentence asserts its value, by the rule above.
func asserts(s string) bool {
	t := plain(tail(s, maxStatement))
	if declined.MatchString(t) {
		return false
	}
	if staged.MatchString(t) {
		return false
	}
	t = connective.ReplaceAllString(t, "")
	if m := fronted.FindString(t); m != "" {
		switch rest := t[len(m):]; {
		case valued(rest):
			t = connective.ReplaceAllString(strings.TrimPrefix(m[len(m)-1:]+rest, " "), "")
		case valued(m) && ofCondition.MatchString(m):
			return false
		}
	}
	t = connective.ReplaceAllString(conclusionOf(t), "")
	if k := strings.LastIndex(t, ", "); k > 0 && reason.MatchString(t[k+2:]) && valued(t[:k]) {
		t = t[:k] // 36, as 40 is too large
	}
	calculated := calculation.MatchString(s)
	if evaluated.MatchString(t) || either.MatchString(t) && !strings.Contains(t, "=") ||
		infinitive.MatchString(t) && !ordinary.MatchString(t) && !calculated {
		return false
	}
	if pending.MatchString(t) || working.MatchString(t) || unvouched.MatchString(t) {
		return false
	}
	m := person.FindStringSubmatch(t)
	return m == nil || calculated || !valued(t) || reached.MatchString(m[1])
}

// resuming matches a sentence without a value that opposes the value before it, or announces more work.
var resuming = lazy(`^(?:but|however|yet|still|actually|hmm+|wait|now|next|then|let|also|unfortunately)\b|` +
	`^(?:(?:so|and),? )?(?:i|we)(?:'ll| will| must| need| still| should| want| would| can't| cannot| have to)\b`)

// leavesIt reports whether a sentence without a value lets the value before it stand.
func leavesIt(s string) bool {
	t := plain(s)
	return courtesy.MatchString(s) || !resuming.MatchString(t) && !pending.MatchString(t) && !unvouched.MatchString(t)
}
