package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/bundle"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/experiments/trackers"
)

func importCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "import",
		Category:  "Share",
		Usage:     "add the runs of a bundle, or of another framework, to the store",
		ArgsUsage: "FILE...",
		Description: "A bundle of exp export is checked bit by bit, then added whole or not at all. Runs that " +
			"are already there stay unchanged, so importing twice changes nothing; but a run that was " +
			"imported without weights or texts gets those that the bundle has, and a run that was exported " +
			"from here, continued or scored elsewhere and comes back is continued here. That needs a bundle with " +
			"all attempts made here, and no other run here that depends on it; otherwise a warning says that the " +
			"bundle has more.\n" +
			"With --from, the files belong to one run of another framework: verl's console log, its file " +
			"logger, dumps of completions (a folder of STEP.jsonl); TensorBoard event files or their folder; a " +
			"table of metrics with a column step (csv, or jsonl with an object per line). exp ls and exp show " +
			"mark such a run as imported. Its metrics can be printed and plotted next to ours; it has no " +
			"configuration, chain (digest of the steps) or weights. Dumped completions become an evaluation, so " +
			"that runs with dumps of the same problems can be compared.",
		UsageText: strings.Join([]string{
			"exp import runs.tar # what exp export wrote",
			"exp import --from verl train.log --name verl-ppo --seed 1 # a console log",
			"exp import --from verl train.log val_dumps --name verl-ppo # with its completions",
			"exp import --from tensorboard tensorboard_log/project/run # event files",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the files are of a run of `FRAMEWORK`: " +
				strings.Join(trackers.Sources(), ", ")},
			&cli.StringFlag{Name: "name", Usage: "with --from: call the run `NAME`",
				DefaultText: "the first file's name"},
			&cli.Int64Flag{Name: "seed", Usage: "with --from: the run has seed `N`"},
			&cli.StringFlag{Name: "algo", Usage: "with --from: the `ALGORITHM`", DefaultText: "unknown"},
			&cli.StringFlag{Name: "task", Usage: "with --from: the `TASK`", DefaultText: "unknown"},
			&cli.StringFlag{Name: "model", Usage: "with --from: the `MODEL`", DefaultText: "unknown"},
		},
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			if w.Flag == "from" {
				return cli.Candidates(trackers.Sources())
			}
			return cli.PathCandidates(w.Text, func(os.DirEntry) bool { return true })
		}),
		Action: cli.WithArgs(1, -1, func(c *cli.Context, args []string) error {
			if c.IsSet("from") {
				return a.importForeign(c, args)
			}
			return a.importBundle(c, args)
		}),
	}
}

// imported is the schema exp.import/1.
type imported struct {
	From    string        `json:"from"` // "bundle" or the framework
	Added   []importedRun `json:"added"`
	Present []importedRun `json:"present"` // already in the store, unchanged
	// Continued are runs that got less far in the store.
	Continued []continuedRun `json:"continued,omitempty"`
	LeftOut   []string       `json:"left_out,omitempty"`
	Points    int64          `json:"points,omitempty"`
	Remarks   []string       `json:"remarks,omitempty"`
}

type importedRun struct {
	Run      ident.Digest `json:"run"`
	Name     string       `json:"name"`
	Seed     int64        `json:"seed"`
	Steps    int64        `json:"steps"` // that the store has
	Restored bool         `json:"restored,omitempty"`
	Gained   []string     `json:"gained,omitempty"` // parts that were missing here: weights, texts
}

type continuedRun struct {
	Run   ident.Digest `json:"run"`
	Name  string       `json:"name"`
	Seed  int64        `json:"seed"`
	Had   int64        `json:"had"`   // steps before
	Steps int64        `json:"steps"` // that the store has now
}

func (a *app) importBundle(c *cli.Context, args []string) error {
	for _, flag := range []string{"name", "seed", "algo", "task", "model"} {
		if c.IsSet(flag) {
			return a.Usagef("--%s needs --from: the runs of a bundle bring their own", flag)
		}
	}
	if len(args) > 1 {
		return a.Usagef("%d bundles given: import one at a time", len(args))
	}
	b, err := bundle.Open(args[0])
	if from := sourceOf(args[0]); errors.Is(err, bundle.ErrCorrupt) && from != "" {
		return cli.Failf(cli.ExitUsage, "%s is not a bundle of exp export", args[0]).
			Advise("it has metrics of another framework: exp import --from " + from + " " + quoteAll(args)[0])
	}
	if err != nil {
		return fileError(err)
	}
	defer b.Close()
	return cli.With(a.OpenStoreToWrite, func(db *store.DB) error {
		done, err := b.Import(c.Context, db, a.byteProgress("import", filepath.Base(args[0])))
		a.CloseProgress()
		if err != nil {
			return err
		}
		out := &imported{From: formatBundle, Added: []importedRun{}, Present: []importedRun{},
			LeftOut: b.Manifest.LeftOut}
		of := map[ident.Digest]bundle.Run{}
		for _, r := range b.Manifest.Runs {
			of[r.RID] = r
		}
		for _, rid := range done.Added {
			r, err := db.Run(c.Context, rid)
			if err != nil {
				return err
			}
			out.Added = append(out.Added, importedRun{Run: rid, Name: r.Name, Seed: r.Seed, Steps: r.Steps})
		}
		for _, p := range done.Continued {
			r := of[p.RID]
			out.Continued = append(out.Continued, continuedRun{Run: p.RID, Name: r.Name, Seed: r.Seed, Had: p.Steps,
				Steps: p.Theirs})
		}
		for _, p := range done.Present {
			r := of[p.RID]
			out.Present = append(out.Present, importedRun{Run: p.RID, Name: r.Name, Seed: r.Seed, Steps: p.Steps,
				Restored: p.Restored, Gained: gained(p)})
			if p.Theirs > p.Steps {
				a.Warn("run %s has %d steps here and %d in the bundle; it is left unchanged: exp resume %[1]s "+
					"continues it, or remove it and what depends on it (exp rm, exp gc --apply) and import again",
					p.RID.Short(), p.Steps, p.Theirs)
			} else if p.Scores > 0 {
				a.Warn("run %s lacks %d scores that the bundle has; it is left unchanged", p.RID.Short(), p.Scores)
			}
		}
		return a.printImported(out)
	})
}

// sourceOf returns the first framework whose metrics a file has; "" if it has none. Only a file
// that begins with text, or is named as an event file, is read: a damaged bundle may be large.
func sourceOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	if bytes.IndexByte(head[:n], 0) >= 0 && !strings.Contains(filepath.Base(path), "tfevents") {
		return ""
	}
	for _, from := range trackers.Sources() {
		if f, err := trackers.Read(from, []string{path}); err == nil && len(f.Series) > 0 {
			return from
		}
	}
	return ""
}

func (a *app) importForeign(c *cli.Context, args []string) error {
	from, err := cli.OneOf("--from", c.String("from"), trackers.Sources())
	if err != nil {
		return err
	}
	f, err := trackers.Read(from, args)
	if err != nil {
		return fileError(err)
	}
	if c.IsSet("name") {
		f.Name = c.String("name")
	}
	if f.Name == "" || strings.ContainsAny(f.Name, "#\n") {
		return a.Usagef("--name %q: a name is a line without #", f.Name)
	}
	f.Seed, f.Algo, f.Task, f.Model = c.Int64("seed"), c.String("algo"), c.String("task"), c.String("model")
	return cli.With(a.OpenStoreToWrite, func(db *store.DB) error {
		r, added, err := f.Enter(c.Context, db)
		if err != nil {
			return err
		}
		for _, text := range f.Remarks {
			a.Warn("%s", text)
		}
		out := &imported{From: from, Added: []importedRun{}, Present: []importedRun{}, Remarks: f.Remarks}
		one := importedRun{Run: r.RID, Name: r.Name, Seed: r.Seed, Steps: r.Steps}
		if !added {
			out.Present = append(out.Present, one)
			return a.printImported(out)
		}
		for _, s := range f.Series {
			out.Points += int64(len(s.Steps))
		}
		out.Added = append(out.Added, one)
		return a.printImported(out)
	})
}

// fileError returns err, as "not found" if the file does not exist.
func fileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{Code: cli.ExitNotFound, Err: err}
	}
	return err
}

func (a *app) printImported(out *imported) error {
	return a.Out.PrintDocument(cli.Document{Schema: "exp.import/1", Data: out, Human: func(w io.Writer) error {
		for _, r := range out.Added {
			fmt.Fprintf(w, "added %s  %s#%d, %s%s\n", r.Run.Short(), term.Clean(r.Name), r.Seed,
				quantity.Plural(int(r.Steps), "step"), out.detail())
		}
		for _, r := range out.Continued {
			text := fmt.Sprintf("is continued: it had %s and has %d now", quantity.Plural(int(r.Had), "step"), r.Steps)
			if r.Had == r.Steps {
				text = "is brought up to date: the bundle has later attempts"
			}
			fmt.Fprintf(w, "%s  %s#%d %s\n", r.Run.Short(), term.Clean(r.Name), r.Seed, text)
		}
		for _, r := range out.Present {
			text := "is already here"
			if r.Restored {
				text = "was deleted here and is restored"
			}
			if len(r.Gained) > 0 {
				text += "; it lacked " + strings.Join(r.Gained, " and ") + " and has them now"
			}
			fmt.Fprintf(w, "%s  %s#%d %s\n", r.Run.Short(), term.Clean(r.Name), r.Seed, text)
		}
		if !slices.ContainsFunc(out.Present, func(r importedRun) bool { return r.Restored || len(r.Gained) > 0 }) &&
			len(out.Added)+len(out.Continued) == 0 {
			fmt.Fprintln(w, "nothing was added")
		}
		if len(out.LeftOut) > 0 {
			fmt.Fprintf(w, "the bundle has no %s\n", strings.Join(out.LeftOut, " and "))
		}
		return nil
	}})
}

// gained names what a run got that it had been imported without.
func gained(p store.Present) (list []string) {
	if p.Weights {
		list = append(list, bundle.LeftWeights)
	}
	if p.Texts {
		list = append(list, bundle.LeftTexts)
	}
	return list
}

// detail adds the origin of a run of another framework.
func (out *imported) detail() string {
	if out.From == formatBundle {
		return ""
	}
	return fmt.Sprintf(", %s points, imported from %s", quantity.Count(out.Points), out.From)
}
