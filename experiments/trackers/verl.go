package trackers

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// verl writes the metrics of a step as one line, to the console as
//
//	step:12 - actor/entropy:0.51 - critic/score/mean:np.float64(0.25)
//
// with whatever the launcher puts before it ("(TaskRunner pid=71) "), and with its
// file logger as {"step": 12, "data": {"actor/entropy": 0.51, …}}
// (verl/utils/logger/aggregate_logger.py, verl/utils/tracking.py). Older versions
// round what they print to three decimals.

// terminalCodes matches the colour codes that Ray puts into logs.
var terminalCodes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// stepLine finds the metrics of a step in a console line.
var stepLine = regexp.MustCompile(`(?:^|[\s)\]])step:(\d+) - (\S+:.*)$`)

// consoleLine reads a console line; ok is false if it has no metrics.
func (p *points) consoleLine(line string) (ok bool, problem string) {
	m := stepLine.FindStringSubmatch(terminalCodes.ReplaceAllString(strings.TrimRight(line, "\r"), ""))
	if m == nil {
		return false, ""
	}
	step, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return false, "the step " + m[1] + " is too large"
	}
	for part := range strings.SplitSeq(m[2], " - ") {
		// A value may have colons in brackets: tensor(0.5, device='cuda:0').
		head := part
		if at := strings.IndexByte(part, '('); at > 0 && strings.HasSuffix(part, ")") {
			head = part[:at]
		}
		i := strings.LastIndexByte(head, ':')
		if i <= 0 {
			return false, "no value in " + strconv.Quote(part)
		}
		name, text := strings.TrimSpace(part[:i]), strings.TrimSpace(part[i+1:])
		value, ok := pythonNumber(text)
		if !ok {
			return false, "the value of " + name + " is " + strconv.Quote(text)
		}
		p.add(name, step, value)
	}
	return true, ""
}

// pythonNumber reads a number as Python prints it: 0.5, True, nan, np.float64(0.5),
// tensor(0.5).
func pythonNumber(text string) (float64, bool) {
	if i := strings.IndexByte(text, '('); i > 0 && strings.HasSuffix(text, ")") {
		text, _, _ = strings.Cut(text[i+1:len(text)-1], ",") // tensor(0.5, device='cuda:0')
		text = strings.Trim(text, "'\"")
	}
	switch text {
	case "True":
		return 1, true
	case "False":
		return 0, true
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// jsonLine reads a line of the file logger or of a metrics table: an object with the
// step, and the metrics at the same level or under "data".
func (p *points) jsonLine(line []byte) (problem string) {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(pythonJSON(line), &row); err != nil {
		return "it is not a JSON object: " + err.Error()
	}
	var step int64
	found := false
	for _, key := range stepKeys {
		if raw, ok := row[key]; ok {
			x, err := strconv.ParseFloat(string(raw), 64)
			if step = int64(x); err != nil || float64(step) != x {
				return key + " is " + string(raw) + ", not a step"
			}
			delete(row, key)
			found = true
			break
		}
	}
	if !found {
		return "it has no step"
	}
	var metric string
	if value, ok := row["value"]; ok && json.Unmarshal(row["metric"], &metric) == nil {
		// A row a point, as exp metrics -o jsonl prints it: NaN is a text.
		v, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64)
		if err != nil {
			return "the value is " + string(value)
		}
		p.add(metric, step, v)
		return ""
	}
	return p.jsonMetrics("", step, row)
}

// stepKeys lists the names of the step column, in order of preference.
var stepKeys = []string{"step", "_step", "global_step", "training/global_step"}

// jsonMetrics adds the numbers of an object in the order of their names: of two for one metric the last counts.
func (p *points) jsonMetrics(prefix string, step int64, row map[string]json.RawMessage) (problem string) {
	for _, name := range slices.Sorted(maps.Keys(row)) {
		raw := row[name]
		switch {
		case len(raw) > 0 && raw[0] == '{':
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(raw, &inner); err != nil {
				return name + ": " + err.Error()
			}
			under := prefix + name + "/"
			if name == "data" && prefix == "" {
				under = ""
			}
			if problem := p.jsonMetrics(under, step, inner); problem != "" {
				return problem
			}
		case string(raw) == "null":
		default:
			if v, ok := jsonNumber(raw); ok { // skips text and lists
				p.add(prefix+name, step, v)
			}
		}
	}
	return ""
}

func jsonNumber(raw json.RawMessage) (float64, bool) {
	switch string(raw) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	case bareMark + `NaN"`:
		return math.NaN(), true
	case bareMark + `Infinity"`:
		return math.Inf(1), true
	case bareMark + `-Infinity"`:
		return math.Inf(-1), true
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	return v, err == nil
}

// bareNumbers are numbers that Python writes and JSON does not have.
var bareNumbers = regexp.MustCompile(`([:,\[]\s*)(NaN|-?Infinity)(\s*[,}\]])`)

// bareMark starts the string that replaces such a number, so that it cannot match other
// text.
const bareMark = `"\u0000`

// pythonJSON quotes NaN and Infinity as written by Python. It leaves text that looks the
// same alone only if the line already is JSON.
func pythonJSON(line []byte) []byte {
	if json.Valid(line) {
		return line
	}
	for bareNumbers.Match(line) { // neighbours share a comma
		line = bareNumbers.ReplaceAll(line, []byte("${1}"+bareMark+`${2}"${3}`))
	}
	return line
}
