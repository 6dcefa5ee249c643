package config

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Describe explains the key at path, or lists the keys of the block at path; the empty
// path lists the whole table. It returns false if no key or block has that path; the
// text then suggests one.
func Describe(path string) (string, bool) {
	if k := lookup(path); k != nil {
		return describeKey(k), true
	}
	g := schema().root
	if path != "" {
		g = schema().group(path)
	}
	if g == nil {
		return fmt.Sprintf("unknown key %q: %s", path, Suggest(path)), false
	}
	var list []*Key
	wide := 0
	for _, k := range schema().keys {
		if path == "" || strings.HasPrefix(k.Path, path+".") {
			list, wide = append(list, k), max(wide, len(k.Path))
		}
	}
	var b strings.Builder
	for _, k := range list { // few defaults are longer than 12
		fmt.Fprintf(&b, "%-*s  %-12s  %s\n", wide, k.Path, k.Default.text(k), k.Help)
	}
	return b.String(), true
}

// Suggest names the key or block that an unknown path probably means.
func Suggest(path string) string {
	if _, why, ok := renamed(path); ok {
		return why
	}
	near, edits := nearestPath(path, append(paths(), blocks()...))
	if near != "" && edits == 1 && len(deeper(path)) == 0 {
		return anyOf([]string{near})
	}
	block, name := cutLast(path)
	if g := schema().group(block); g != nil && block != "" {
		if help, near := didYouMean(g, name, path, true); near != "" {
			return help
		}
	}
	if same := elsewhere(name, path); len(same) > 0 {
		return anyOf(same)
	}
	return "exp config schema lists all keys"
}

// describeKey renders the row of a key for reading.
func describeKey(k *Key) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n", k.Path, k.Help)
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", name, text)
		}
	}
	row("type", k.Type())
	row("unit", k.Unit)
	row("default", k.Default.text(k))
	row("effect", k.effect())
	readers := stageList(k.Stages)
	if k.Judges && !k.Reads(EvalScore) {
		readers += "; of task prompts " + string(EvalScore) + " too"
	}
	row("read by", readers)
	row("identity", k.identity())
	for i := range k.Fields {
		f := &k.Fields[i]
		row("."+f.Path, f.Type()+": "+f.Help)
	}
	if k.Path == "algo.kind" {
		b.WriteString(describeAlgorithms())
	}
	b.WriteString(aboutTask(k.Path))
	b.WriteString(aboutPassRate(k.Path))
	b.WriteString(aboutReward(k.Path))
	b.WriteString(aboutPrime(k.Path))
	b.WriteString(aboutModel(k.Path))
	b.WriteString(aboutRewardModel(k.Path))
	b.WriteString(aboutPrefer(k.Path))
	b.WriteString(aboutRollout(k.Path))
	b.WriteString(aboutTools(k.Path))
	b.WriteString(aboutScorer(k.Path))
	return b.String()
}

// effect says when a key counts; "" means always.
func (k *Key) effect() string {
	parts := make([]string, len(k.When))
	for i, c := range k.When {
		parts[i] = c.String()
	}
	if len(parts) == 0 {
		return ""
	}
	return "only while " + strings.Join(parts, " and ")
}

func (k *Key) identity() string {
	switch k.Role {
	case Nonsemantic:
		return "nonsemantic: changes no result"
	case Replicate:
		return "the run's own; not part of the experiment"
	case Expanded:
		return "through the keys whose defaults it sets"
	case External:
		return "by the contents' digest, not by the path"
	case Semantic:
		if protocol(k.Path) {
			return "part of the evaluation protocol"
		}
	}
	return "part of the experiment"
}

func stageList(stages []Stage) string {
	if len(stages) == 0 {
		return "no stage"
	}
	names := make([]string, len(stages))
	for i, s := range stages {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// Facts holds what Describe and Explain say about a key, for programs.
type Facts struct {
	Key      string   `json:"key"`
	Help     string   `json:"help"`
	Type     string   `json:"type"`
	Unit     string   `json:"unit,omitempty"`
	Default  string   `json:"default"`
	Effect   string   `json:"effect,omitempty"` // when the key counts; empty if always
	ReadBy   []string `json:"read_by"`
	Identity string   `json:"identity"`
	Value    *string  `json:"value,omitempty"`  // as Format writes it; nil without a configuration, and where the key has no effect
	Origin   string   `json:"origin,omitempty"` // of Value
	// Algorithms lists the choices of algo.kind; empty for other keys.
	Algorithms []AlgorithmFacts `json:"algorithms,omitempty"`
}

// AlgorithmFacts is a row of the table of algorithms, for programs.
type AlgorithmFacts struct {
	Name     string            `json:"name"`
	Title    string            `json:"title"`
	Source   string            `json:"source"`
	Equation string            `json:"equation"`
	Sets     map[string]string `json:"sets"` // keys and their defaults, as Format writes them
}

// FactsOf returns the facts of the key at path, or of all keys in the block at path;
// the empty path selects all keys. It returns none if no key or block has that path. r
// may be nil.
func FactsOf(path string, r *Resolved) []Facts {
	var list []Facts
	for _, k := range schema().keys {
		if path != "" && k.Path != path && !strings.HasPrefix(k.Path, path+".") {
			continue
		}
		f := Facts{Key: k.Path, Help: k.Help, Type: k.Type(), Unit: k.Unit, Default: k.Default.text(k),
			Effect: k.effect(),
			ReadBy: []string{}, Identity: k.identity()}
		for _, s := range k.Stages {
			f.ReadBy = append(f.ReadBy, string(s))
		}
		if k.Judges && !k.Reads(EvalScore) {
			f.ReadBy = append(f.ReadBy, string(EvalScore))
		}
		if k.Path == "algo.kind" {
			f.Algorithms = algorithmFacts()
		}
		if r != nil && r.Has(k.Path) {
			v, _ := r.Value(k.Path)
			text := Format(k, v)
			f.Value, f.Origin = &text, r.Origin(k.Path)
		}
		list = append(list, f)
	}
	return list
}

// explainBlock lists the keys of a block with their values and origins.
func (r *Resolved) explainBlock(path string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range FactsOf(path, r) {
		value, origin := "–", "no effect"
		if f.Value != nil {
			value, origin = *f.Value, f.Origin
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Key, value, origin, f.Help)
	}
	w.Flush()
	return b.String()
}

// Explain is Describe plus value and origin in this configuration, for a key or for the
// keys of a block.
func (r *Resolved) Explain(path string) (string, bool) {
	text, ok := Describe(path)
	k := lookup(path)
	switch {
	case !ok:
		return text, false
	case k == nil:
		return r.explainBlock(path), true
	}
	if !r.Has(path) {
		state := "no effect in this configuration"
		for _, d := range r.Dropped {
			if d.Path == path {
				state += fmt.Sprintf("; %s at %s was dropped because %s", d.Value, d.Origin, d.Because)
			}
		}
		return text + "  here      " + state + "\n", true
	}
	v, _ := r.Value(path)
	return text + fmt.Sprintf("  here      %s (%s)\n", Format(k, v), r.Origin(path)), true
}
