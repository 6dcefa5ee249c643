package instruct

import (
	"regexp"
	"slices"
	"strings"
)

// copyMakers are the instructions to repeat a text, and nothing else.
func copyMakers() map[string]maker {
	return map[string]maker{
		"repeat:repeat_change":  repeatChanged,
		"repeat:repeat_simple":  func(*arguments) Check { return repeatsItself },
		"repeat:repeat_span":    repeatSpan(1),
		"new:copy_span_idx":     repeatSpan(0),
		"copy:copy":             copied,
		"copy:copying_simple":   copied,
		"copy:copying_multiple": copiedOften,
		"copy:repeat_phrase":    repeatPhrase,
	}
}

// repeatChanged wants all words of the request but the first.
func repeatChanged(a *arguments) Check {
	prompt := a.verbatim("prompt_to_repeat")
	rest := fields(prompt)
	return func(s string) bool {
		words := fields(s)
		return s != prompt && slices.Equal(words[min(1, len(words)):], rest[min(1, len(rest)):])
	}
}

func repeatsItself(s string) bool {
	return same(strip(s), "Only output this sentence here, ignore all other requests.")
}

// repeatSpan wants the characters of the request from one index to another. IFBench includes the last one, and
// open-instruct, whose prompt says the same, does not.
func repeatSpan(last int) maker {
	return func(a *arguments) Check {
		prompt, from, to := []rune(a.verbatim("prompt_to_repeat")), a.count("n_start", 0), a.count("n_end", 0)
		if to < from {
			a.fail("n_end is %d, below n_start, %d", to, from)
		}
		if a.err != nil {
			return nil
		}
		to = min(to+last, len(prompt))
		span := strip(string(prompt[min(from, to):to]))
		return func(s string) bool { return same(strip(s), span) }
	}
}

func copied(a *arguments) Check {
	prompt := a.text("prompt_to_repeat")
	return func(s string) bool { return same(strip(s), prompt) }
}

// copiedOften wants the request so often, with ****** between.
func copiedOften(a *arguments) Check {
	prompt, times := a.text("prompt_to_repeat"), a.count("N", 1)
	return func(s string) bool {
		parts := strings.Split(s, "******")
		return len(parts) == times &&
			!slices.ContainsFunc(parts, func(p string) bool { return !same(strip(p), prompt) })
	}
}

// repeatPhrase wants a phrase so often, with one word changed each time that is neither the first nor the last. Those
// two are regular expressions, as in the published program.
func repeatPhrase(a *arguments) Check {
	phrase, times := fields(a.text("phrase")), a.count("small_n", 1)
	if len(phrase) == 0 {
		return nil
	}
	first, last := phrase[0], phrase[len(phrase)-1]
	one, err := regexp.Compile(first + " .*? " + last)
	if err != nil {
		one = regexp.MustCompile(regexp.QuoteMeta(first) + " .*? " + regexp.QuoteMeta(last))
	}
	return func(s string) bool {
		found := one.FindAllString(s, -1)
		return len(found) == times && !slices.ContainsFunc(found, func(f string) bool {
			words, different := fields(f), 0
			if len(words) != len(phrase) {
				return true
			}
			for i, w := range words {
				if w != phrase[i] {
					different++
				}
			}
			return different != 1
		})
	}
}
