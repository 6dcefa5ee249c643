package main

import (
	"io"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/config"
)

func configCommand(a *app) *cli.Command {
	sets := []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "set a configuration key: `KEY=VALUE`"},
		&cli.StringSliceFlag{Name: "overlay", Usage: "lay a configuration `FILE` over CONFIG"},
	}
	files := a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate { return configCandidates(w) })
	fileThenKey := a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
		switch {
		case w.Flag == "" && len(w.Args) > 0:
			return keyCandidates()
		case w.Flag == "":
			return append(configCandidates(w), keyCandidates()...)
		}
		return configCandidates(w)
	})
	keys := a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate { return keyCandidates() })
	return &cli.Command{
		Name:     "config",
		Category: "Configuration",
		Usage:    "write, check, show and explain configurations",
		UsageText: "exp config new my.yaml --task countdown --algo grpo # a recipe to start from\n" +
			"exp config check configs/*.yaml # all errors, with their places\n" +
			"exp config show my.yaml --origin # every value, and where it comes from\n" +
			"exp config schema algo.flowrl # what the keys of a block mean",
		Subcommands: []*cli.Command{
			a.configNewCommand(),
			a.configTranslateCommand(),
			{
				Name: "check", ArgsUsage: "CONFIG...", Usage: "report every error of configurations",
				UsageText: "exp config check configs/*.yaml # all errors, with their places\n" +
					"exp config check my.yaml --json # for editors",
				Flags: sets, BashComplete: files, Action: a.checkConfigs,
			},
			{
				Name: "show", ArgsUsage: "CONFIG", Usage: "print a configuration with everything resolved",
				UsageText: "exp config show configs/ppo_7b_math.yaml # extends, overlays and defaults applied\n" +
					"exp config show configs/ppo_7b_math.yaml --origin # and where each value comes from",
				Flags: append([]cli.Flag{&cli.BoolFlag{Name: "origin",
					Usage: "show where each value comes from"}}, sets...),
				BashComplete: files, Action: cli.WithArgs(1, 1, a.showConfig),
			},
			{
				Name: "diff", ArgsUsage: "CONFIG CONFIG", Usage: "list the keys that two configurations disagree on",
				UsageText: "exp config diff configs/ppo_7b_math.yaml configs/flowrl_7b_math.yaml # the " +
					"whole treatment",
				Flags: sets, BashComplete: files, Action: cli.WithArgs(2, 2, a.diffConfigs),
			},
			{
				Name: "schema", ArgsUsage: "[KEY]", Usage: "explain a key or a block, or list all keys",
				Description: "A list has one line per key; a terminal cuts long ones. --long adds type, range " +
					"and role.",
				UsageText: "exp config schema # every key with its default\n" +
					"exp config schema algo.flowrl --long # one block, everything about each key\n" +
					"exp config schema -o json # JSON Schema, for editors",
				Flags:        []cli.Flag{&cli.BoolFlag{Name: "long", Usage: "everything about each key"}},
				BashComplete: keys, Action: cli.WithArgs(0, 1, a.configSchema),
			},
			{
				Name: "explain", ArgsUsage: "[CONFIG] KEY", Usage: "explain a key and show its value in a " +
					"configuration",
				UsageText: "exp config explain configs/flowrl_7b_math.yaml algo.flowrl.weight.high # meaning, " +
					"value, origin\n" +
					"exp config explain algo.kind # every algorithm: paper, equation, and the settings " +
					"it implies",
				Flags: sets, BashComplete: fileThenKey, Action: cli.WithArgs(1, 2, a.explainKey),
			},
		},
	}
}

// configCandidates completes configuration files, and the flags of commands that
// take them.
func configCandidates(w cli.Word) []cli.Candidate {
	switch w.Flag {
	case "", "overlay":
		return cli.PathCandidates(w.Text, cli.HasExt(".yaml", ".yml"))
	case "set":
		return setCandidates(w.Text)
	case "until":
		return cli.Candidates(stageNames())
	case "device":
		return deviceCandidates()
	}
	return nil
}

// setCandidates completes KEY=VALUE: the keys, and after the = the words that a key
// may be set to.
func setCandidates(text string) []cli.Candidate {
	path, _, valued := strings.Cut(text, "=")
	var list []cli.Candidate
	for _, k := range config.Keys() {
		switch {
		case !valued:
			list = append(list, cli.Candidate{Text: k.Path + "=", Note: k.Help})
		case k.Path != strings.TrimSuffix(path, "+"):
		case k.Kind == config.Bool:
			list = append(list, cli.Candidate{Text: path + "=true", Note: ""},
				cli.Candidate{Text: path + "=false", Note: ""})
		default:
			for _, word := range k.Words {
				list = append(list, cli.Candidate{Text: path + "=" + word, Note: ""})
			}
		}
	}
	return list
}

func keyCandidates() []cli.Candidate {
	var list []string
	for _, k := range config.Keys() {
		list = append(list, k.Path)
	}
	return cli.Candidates(list)
}

func (a *app) loadOne(c *cli.Context, file string) (*config.Resolved, error) {
	return config.Load(config.Input{File: file, User: a.userConfig(), Overlays: c.StringSlice("overlay"),
		Sets: c.StringSlice("set")})
}

func (a *app) checkConfigs(c *cli.Context) error {
	if c.NArg() == 0 {
		return a.Usagef("no configuration given")
	}
	configs, err := a.loadConfigs(c)
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.config.check/1", Columns: []cli.Column{{Key: "file", ID: true}, {Key: "name"},
		{Key: "algo"}, {Key: "result"}, {Key: "dropped", Title: "no effect"}}}
	for i, r := range configs {
		t.Rows = append(t.Rows, []any{c.Args().Get(i), r.Run.Name, r.Run.Algorithm(), "ok", len(r.Dropped)})
	}
	return a.Out.PrintTable(t)
}

func (a *app) showConfig(c *cli.Context, args []string) error {
	r, err := a.loadOne(c, args[0])
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, k := range r.Keys() {
		values[k.Path], _ = r.Value(k.Path)
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.config/1", Data: values, Human: func(w io.Writer) error {
		text := r.YAML()
		if c.Bool("origin") {
			text = r.WithOrigins()
		}
		_, err := io.WriteString(w, text)
		return err
	}})
}

func (a *app) diffConfigs(c *cli.Context, args []string) error {
	left, err := a.loadOne(c, args[0])
	if err != nil {
		return err
	}
	right, err := a.loadOne(c, args[1])
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.config.diff/1", Columns: []cli.Column{{Key: "key", ID: true},
		{Key: "a", Title: args[0]}, {Key: "b", Title: args[1]}, {Key: "class"}}}
	for _, d := range config.Diff(left, right) {
		t.Rows = append(t.Rows, []any{d.Key.Path, d.Values[0], d.Values[1], string(d.Class)})
	}
	if len(t.Rows) == 0 {
		a.Note("no key differs")
	}
	return a.Out.PrintTable(t)
}

func (a *app) configSchema(c *cli.Context, args []string) error {
	if a.Out.Format == cli.FormatJSON && len(args) == 0 {
		b, err := config.JSONSchema()
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write(b)
		return err
	}
	path := ""
	if len(args) == 1 {
		path = args[0]
	}
	text, ok := config.Describe(path)
	if !ok {
		return noSuchKey(path)
	}
	facts := config.FactsOf(path, nil)
	block := path == "" || len(facts) != 1 || facts[0].Key != path
	switch {
	case block && c.Bool("long"):
		var all []string
		for _, f := range facts {
			one, _ := config.Describe(f.Key)
			all = append(all, one)
		}
		text = strings.Join(all, "\n")
	case block && a.Out.ForPeople() && a.Out.Stream.TTY:
		return a.schemaLines(facts)
	}
	return a.printFacts("exp.config.schema/1", facts, text)
}

// schemaLines prints a line per key in the width of the terminal.
func (a *app) schemaLines(facts []config.Facts) error {
	t := cli.Table{Columns: []cli.Column{{Key: "key", ID: true}, {Key: "default", Rank: 2, Min: 8},
		{Key: "meaning", Rank: 1, Min: 24}}}
	for _, f := range facts {
		t.Rows = append(t.Rows, []any{f.Key, f.Default, f.Help})
	}
	if err := a.Out.PrintAligned(t); err != nil {
		return err
	}
	a.Note("exp config schema KEY --long says more")
	return nil
}

// printFacts prints the facts about keys: as text for people, key by key for programs.
func (a *app) printFacts(schema string, facts []config.Facts, text string) error {
	return a.Out.PrintDocument(cli.Document{Schema: schema, Data: facts, Human: func(w io.Writer) error {
		if s := a.Out.Stream; s.TTY {
			text = strings.Join(term.Reflow(text, s.Width()), "\n")
		}
		_, err := io.WriteString(w, text)
		return err
	}})
}

func (a *app) explainKey(c *cli.Context, args []string) error {
	if len(args) == 1 && !strings.HasSuffix(args[0], ".yaml") {
		text, ok := config.Describe(args[0])
		if !ok {
			return noSuchKey(args[0])
		}
		return a.printFacts("exp.config.explain/1", config.FactsOf(args[0], nil), text)
	}
	if _, err := cli.Positionals(c, 2, 2); err != nil {
		return err
	}
	r, err := a.loadOne(c, args[0])
	if err != nil {
		return err
	}
	text, ok := r.Explain(args[1])
	if !ok {
		return noSuchKey(args[1])
	}
	return a.printFacts("exp.config.explain/1", config.FactsOf(args[1], r), text)
}

func noSuchKey(path string) error {
	return cli.Usagef("unknown configuration key %q", path).Advise(config.Suggest(path))
}
