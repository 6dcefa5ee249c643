package wording

import (
	"strconv"
	"strings"
	"unicode"

	"exp/eval/grade/pattern"
)

// Chinese words of an answer: units, bounds, "or", "no solution". English words or signs of the same sense take their
// place, so that one set of rules judges both languages.

// FromChinese replaces the Chinese words of an answer whose sense it knows: 12元或13元 becomes 12 yuan or 13 yuan.
// Other words stay as they are; sentences are not translated.
func FromChinese(s string) string {
	if !hasHan(s) {
		return s
	}
	s = chineseText.ReplaceAllString(s, "$1")
	s = chineseLabel.ReplaceAllString(strings.TrimSpace(s), "")
	s = chineseOption.ReplaceAllString(s, "$1")
	if t := chineseWhole[strings.Trim(s, " .。!！")]; t != "" {
		return t
	}
	s = chineseFraction.ReplaceAllStringFunc(s, readFraction)
	s = chineseScale.ReplaceAllStringFunc(s, func(m string) string {
		return strings.NewReplacer("万", ` \times 10^{4}`, "亿", ` \times 10^{8}`).Replace(m)
	})
	s = chineseUnit.ReplaceAllStringFunc(s, func(m string) string {
		p := chineseUnit.FindStringSubmatch(m)
		return p[1] + chineseUnits[p[2]] + p[3]
	})
	s = chineseCount.ReplaceAllString(s, "$1 items$2")
	s = chineseRoot.ReplaceAllString(s, `\sqrt{$1}`)
	s = chineseMinus.ReplaceAllString(s, "$1-$2")
	s = chineseWords.Replace(s)
	return strings.TrimSpace(circledNext.ReplaceAllString(circledNext.ReplaceAllString(s, "$1$2"), "$1$2"))
}

// hasHan reports whether a text has a Chinese character, the comma of Chinese lists or a circled digit.
func hasHan(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xe2 {
			return strings.ContainsFunc(s[i:], func(r rune) bool {
				return r == '、' || r >= '①' && r <= '⑨' || unicode.Is(unicode.Han, r)
			})
		}
	}
	return false
}

// chineseWhole are answers that are words alone.
var chineseWhole = map[string]string{
	"是": "Yes", "是的": "Yes", "能": "Yes", "可以": "Yes", "存在": "Yes",
	"否": "No", "不是": "No", "不能": "No", "不可以": "No",
	"对": "True", "正确": "True", "错": "False", "错误": "False", "不正确": "False",
	"无解": "no solution", "方程无解": "no solution", "没有解": "no solution", "无实数解": "no real solution",
	"不存在": "does not exist", "空集": "empty set",
	"全体实数": "all real numbers", "所有实数": "all real numbers", "任意实数": "all real numbers",
	"一切实数": "all real numbers", "实数集": "all real numbers", "无穷大": "infinity", "正无穷": "infinity",
	"负无穷": "negative infinity", "无数个": "infinitely many", "无穷多个": "infinitely many", "无限多个": "infinitely many",
	"星期一": "Monday", "星期二": "Tuesday", "星期三": "Wednesday", "星期四": "Thursday", "星期五": "Friday",
	"星期六": "Saturday", "星期日": "Sunday", "星期天": "Sunday", "周一": "Monday", "周二": "Tuesday", "周三": "Wednesday",
	"周四": "Thursday", "周五": "Friday", "周六": "Saturday", "周日": "Sunday",
}

// chineseUnits are units behind a value.
var chineseUnits = map[string]string{
	"元": " yuan", "元钱": " yuan", "块钱": " yuan", "米": " meters", "厘米": " cm", "毫米": " mm", "分米": " dm", "千米": " km",
	"公里": " km", "平方米": " m^2", "平方厘米": " cm^2", "平方分米": " dm^2", "平方千米": " km^2", "立方米": " m^3",
	"立方厘米": " cm^3", "立方分米": " dm^3", "升": " liters", "毫升": " ml", "克": " grams", "千克": " kg", "公斤": " kg",
	"吨": " tonnes", "小时": " hours", "分钟": " minutes", "秒": " seconds", "天": " days", "年": " years", "个月": " months",
	"度": "°", "米/秒": " m/s", "千米/时": " km/h", "千米/小时": " km/h", "公里/小时": " km/h", "种": " ways",
	"平方单位": " square units", "个单位": " units", "倍": " times",
}

var chineseWords = strings.NewReplacer(
	"大于或等于", ` \ge `, "大于等于", ` \ge `, "不小于", ` \ge `, "不少于", ` \ge `, "不低于", ` \ge `, "至少", ` \ge `,
	"小于或等于", ` \le `, "小于等于", ` \le `, "不大于", ` \le `, "不超过", ` \le `, "不多于", ` \le `, "至多", ` \le `,
	"最多", ` \le `, "大于", " > ", "超过", " > ", "多于", " > ", "小于", " < ", "少于", " < ", "不足", " < ", "低于", " < ",
	"不等于", ` \ne `, "等于", " = ", "或者", " or ", "或", " or ", "以及", ", ", "和", ", ", "、", ", ",
	"不是", " not ", "并非", " not ", "约为", "about ", "大约", "about ", "约", "about ", "。", ".",
)

// han matches a number in Chinese characters or digits.
const han = `[零〇一二两三四五六七八九十百千]+|[0-9.]+`

var (
	// chineseLabel matches what only says that the answer follows: 【答案】, 故选:, 选项.
	chineseLabel = pattern.New(`^(?:【答案】|(?:因此|所以|故|综上所述)?[,，]?` +
		`(?:(?:最终|最后|正确)?的?答案(?:是|为|应为)?|答|应?选项?|为)?[:：]?)\s*`)
	chineseFraction = pattern.New(`(` + han + `)分之(` + han + `)`)
	chineseUnit     = pattern.New(`([0-9})$])\s*(元钱?|块钱|个月|个单位|平方单位|(?:平方|立方)?(?:厘|毫|分|千)?米(?:/秒|/小?时)?|` +
		`公里(?:/小时)?|毫?升|千?克|公斤|吨|小时|分钟|秒|天|年|度|种|倍)([^\p{Han}]|$)`)
	// chineseCount matches a classifier and the things it counts, but not 12个以上 (12 or more), 12个左右 (about 12)
	// or 12个或更多: those are not 12.
	chineseCount = pattern.New(`([0-9])\s*(?:[个只名人位本张块条棵支件辆次组排页袋箱瓶朵头匹间架台道题岁]` +
		`[^\P{Han}以左或上下不多余非半倍至到方的]{0,5}|种(?:不同)?的?(?:方法|方式|方案|选法|排法|走法|情况))([^\p{Han}]|$)`)
	chineseScale  = pattern.New(`[0-9]\s*[万亿](?:[^万亿]|$)`)
	chineseOption = pattern.New(`^(\(?[A-J]\)?) ?选?项$`)
	// chineseText matches Chinese words in an upright font.
	chineseText = pattern.New(`\\(?:text|textbf|mathrm|mbox) *\{([^{}]*\p{Han}[^{}]*)\}`)
	// circledNext matches two circled digits, which name statements, and the comma between them.
	circledNext  = pattern.New(`([①-⑨]) ?, ?([①-⑨])`)
	chineseRoot  = pattern.New(`根号\s*([0-9]+)`)
	chineseMinus = pattern.New(`(^|[=,(\[{])负\s*([0-9])`)
)

// readFraction reads 三分之二 as 2/3, 百分之五 as 5%.
func readFraction(s string) string {
	below, above, _ := strings.Cut(s, "分之")
	number := func(s string) string {
		if n, ok := HanNumeral(s); ok {
			return strconv.FormatInt(n, 10)
		}
		return s
	}
	if below == "百" {
		return number(above) + "%"
	}
	return number(above) + "/" + number(below)
}
