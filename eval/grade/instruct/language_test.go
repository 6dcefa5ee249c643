package instruct

import (
	"slices"
	"testing"
)

// samples are sentences in each language.
func samples() map[string][]string {
	return map[string][]string{
		"en": {"The boat left at noon and nobody was there to see it.", "i do not know what you want from me"},
		"de": {"Das Boot fuhr am Mittag ab, und niemand war da, um es zu sehen.", "ich weiß nicht, was du von mir willst"},
		"fr": {"Le bateau est parti à midi et personne n'était là pour le voir.", "je ne sais pas ce que vous voulez de nous"},
		"es": {"El barco salió al mediodía y no había nadie para verlo.", "no sé lo que quieres de mí, pero ya está"},
		"pt": {"O barco saiu ao meio-dia e não havia ninguém para ver.", "eu não sei o que você quer de nós"},
		"it": {"La barca è partita a mezzogiorno e non c'era nessuno a vederla.", "non so che cosa vuoi da noi, ma anche questo"},
		"nl": {"De boot vertrok om twaalf uur en er was niemand om het te zien.", "ik weet niet wat je van mij wilt"},
		"fi": {"Vene lähti keskipäivällä, eikä siellä ollut ketään, joka olisi nähnyt sen, mutta se ei ole totta."},
		"pl": {"Łódź odpłynęła w południe i nie było nikogo, kto by to widział.", "nie wiem, czego ode mnie chcesz, ale to jest tak"},
		"vi": {"Chiếc thuyền đã rời đi vào buổi trưa và không có ai ở đó để thấy.", "tôi không biết bạn muốn gì"},
		"sw": {"Mashua iliondoka saa sita mchana na hakuna mtu wa kuiona.", "sijui kwa nini, lakini ni kama hiyo"},
		"ru": {"Лодка ушла в полдень, и там не было никого, кто бы это видел.", "я не знаю, что вы хотите от меня"},
		"uk": {"Човен відплив опівдні, і там не було нікого, хто б це бачив.", "я не знаю, що ви хочете від мене"},
		"bg": {"Лодката тръгна по обяд и там нямаше никой, който да я види.", "не знам какво искате от мен, но това е така"},
		"ar": {"غادر القارب في الظهر ولم يكن هناك أحد على الشاطئ", "هذا هو الذي كان في البيت"},
		"fa": {"قایق در ظهر رفت و هیچ کس آنجا نبود که آن را ببیند", "من نمی دانم که شما از من چه می خواهید"},
		"ur": {"کشتی دوپہر کو چلی گئی اور وہاں کوئی نہیں تھا", "میں نہیں جانتا کہ آپ کیا چاہتے ہیں"},
		"hi": {"नाव दोपहर को चली गई और वहाँ कोई नहीं था", "मैं नहीं जानता कि आप क्या चाहते हैं"},
		"mr": {"बोट दुपारी निघाली आणि तिथे कोणीही नव्हते, पण ते खरे आहे", "मी सांगतो आणि तुम्ही ऐका"},
		"ne": {"डुङ्गा दिउँसो गयो र त्यहाँ कोही थिएन, तर यो सत्य हो", "म तपाईं को कुरा गर्न सक्छु र हामी जान्छौं"},
		"bn": {"নৌকাটি দুপুরে চলে গেল।"}, "gu": {"હોડી બપોરે નીકળી ગઈ."}, "pa": {"ਕਿਸ਼ਤੀ ਦੁਪਹਿਰ ਨੂੰ ਚਲੀ ਗਈ।"},
		"kn": {"ದೋಣಿ ಮಧ್ಯಾಹ್ನ ಹೊರಟಿತು."}, "ml": {"ബോട്ട് ഉച്ചയ്ക്ക് പോയി."}, "ta": {"படகு நண்பகலில் புறப்பட்டது."},
		"te": {"పడవ మధ్యాహ్నం బయలుదేరింది."}, "th": {"เรือออกตอนเที่ยง"}, "he": {"הסירה עזבה בצהריים."}, "el": {"Το πλοίο έφυγε."},
		"ko": {"배는 정오에 떠났다."}, "ja": {"船は正午に出た。", "東京大学へ行く。"}, "zh": {"船在中午离开了。"},
	}
}

func TestLanguages(t *testing.T) {
	for code, texts := range samples() {
		for _, text := range texts {
			for other := range samples() {
				if got := written(text, other); got != (code == other) {
					t.Errorf("%s: written(%q, %s) = %v", code, text, other, got)
				}
			}
		}
	}
	for code := range samples() {
		if !knownLanguage(code) {
			t.Errorf("%s is not known", code)
		}
	}
	for _, l := range languages() {
		if len(l.words) == 0 && len(speakers()[l.script]) > 0 {
			t.Errorf("%s shares its script and has no words", l.code)
		}
		if !slices.ContainsFunc(scripts(), func(s script) bool { return s.name == l.script }) {
			t.Errorf("%s: unknown script %s", l.code, l.script)
		}
	}
}

func TestLanguageOfLittle(t *testing.T) {
	for _, tt := range []struct {
		text, code string
		want       bool
	}{
		{"", "de", true},
		{"42 * 7 = ?", "hi", true},
		{"Wunderbar!", "de", true}, // a word that tells nothing
		{"Wunderbar!", "hi", false},
		{"Wunderbar!", "ja", false},
		{"Xyzzy foo bar baz qux quux corge grault garply.", "de", false}, // as many that tell nothing
		{"日本", "ja", false}, // no kana
		{"日本", "zh-CN", true},
		{"Use the function print() to say नमस्ते to everybody in the room.", "hi", false},
	} {
		if got := written(tt.text, tt.code); got != tt.want {
			t.Errorf("written(%q, %s) = %v", tt.text, tt.code, got)
		}
	}
}

func TestEnglishCase(t *testing.T) {
	check := func(id string) Check {
		c, err := Instruction{ID: "change_case:" + id}.Check()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	capital, lowercase := check("english_capital"), check("english_lowercase")
	for _, tt := range []struct {
		text               string
		capital, lowercase bool
	}{
		{"THE BOAT LEFT AT NOON.", true, false},
		{"the boat left at noon.", false, true},
		{"The boat left at noon.", false, false},
		{"LE BATEAU EST PARTI À MIDI ET IL NE VIENT PAS.", false, false},
		{"le bateau est parti à midi et il ne vient pas.", false, false},
		{"4 + 4", false, false}, // no letters
		{"ǅ", false, false},     // neither large nor small
		{"I.", true, false},
		{"THE BOAT AND ǅ", false, false},
		{"the boat and ǅ", false, false},
	} {
		if capital(tt.text) != tt.capital || lowercase(tt.text) != tt.lowercase {
			t.Errorf("%q: %v, %v", tt.text, capital(tt.text), lowercase(tt.text))
		}
	}
}
