package cli

import "fmt"

// Topic is a help page that is not about one command.
type Topic struct {
	Name  string
	Usage string      // one line, as for a Command
	Text  string      // prose above the rows; may be empty
	Rows  [][2]string // a word and what it means
}

// topic finds a help topic by name, or returns nil.
func (a *App) topic(name string) *Topic {
	for i := range a.topics {
		if a.topics[i].Name == name {
			return &a.topics[i]
		}
	}
	return nil
}

// topicCandidates proposes the topics for exp help.
func (a *App) topicCandidates() []Candidate {
	var out []Candidate
	for _, t := range a.topics {
		out = append(out, Candidate{t.Name, t.Usage})
	}
	return out
}

func (p *helpPage) topic(root string, t *Topic) {
	p.text("", fmt.Sprintf("%s help %s – %s", root, t.Name, t.Usage))
	if t.Text != "" {
		p.text("", "")
		p.text("", t.Text)
	}
	fmt.Fprintln(p.out)
	p.rows(t.Rows)
}

// moreHelp lists what exp help explains, at the end of the program's help.
func (p *helpPage) moreHelp(root string, topics []Topic) {
	p.heading("more help")
	rows := [][2]string{{root + " help COMMAND", "explain a command, with examples"}}
	for _, t := range topics {
		rows = append(rows, [2]string{root + " help " + t.Name, t.Usage})
	}
	p.rows(rows)
}
