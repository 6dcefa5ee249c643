package instruct

import "strings"

// wholeMakers are the instructions about the response as a whole: its language, its case, its begin and end.
func wholeMakers() map[string]maker {
	return map[string]maker{
		"language:response_language": responseLanguage,
		"change_case:english_capital": func(*arguments) Check {
			return func(s string) bool { return isUpper(s) && written(s, "en") }
		},
		"change_case:english_lowercase": func(*arguments) Check {
			return func(s string) bool { return isLower(s) && written(s, "en") }
		},
		"combination:two_responses": func(*arguments) Check { return twoResponses },
		"combination:repeat_prompt": repeatPrompt,
		"startend:end_checker":      endsWith,
		"startend:quotation": func(*arguments) Check {
			return func(s string) bool {
				s = strip(s)
				return len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"'
			}
		},
	}
}

func responseLanguage(a *arguments) Check {
	language := a.text("language")
	if !knownLanguage(language) {
		a.fail("language %q: known are %s", language, strings.Join(languageCodes(), ", "))
	}
	return func(s string) bool { return written(s, language) }
}

// twoResponses wants two different answers, with ****** between them.
func twoResponses(s string) bool {
	parts := strings.Split(s, "******")
	var answers []string
	for i, part := range parts {
		switch part = strip(part); {
		case part != "":
			answers = append(answers, part)
		case i > 0 && i < len(parts)-1:
			return false
		}
	}
	return len(answers) == 2 && answers[0] != answers[1]
}

// repeatPrompt wants the request word for word before the answer, in any case.
func repeatPrompt(a *arguments) Check {
	prompt := strings.ToLower(a.text("prompt_to_repeat"))
	return func(s string) bool { return strings.HasPrefix(strings.ToLower(strip(s)), prompt) }
}

// endsWith wants a phrase at the end, in any case; quotation marks may follow it.
func endsWith(a *arguments) Check {
	phrase := strings.ToLower(a.text("end_phrase"))
	return func(s string) bool {
		return strings.HasSuffix(strings.ToLower(strings.Trim(strip(s), `"`)), phrase)
	}
}
