// Package cli is the frame of the program exp: everything that all commands share. It
// knows no commands. Run takes a Program, executes the command that the arguments name,
// and returns the exit code.
//
// A constructor makes a Command from the App:
//
//	func countCommand(a *app) *cli.Command { // app embeds *cli.App
//		return &cli.Command{
//			Name: "count", Category: "Results", Usage: "count the steps of a run", ArgsUsage: "RUN",
//			UsageText: "exp count @last # how many steps were recorded",
//			Flags:     []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "count repeated steps too"}},
//			Action: func(c *cli.Context) error {
//				args, err := cli.Positionals(c, 1, 1)
//				if err != nil {
//					return err
//				}
//				return a.WithStore(func(db *store.DB) error {
//					n, err := count(c.Context, db, args[0], c.Bool("all"))
//					if err != nil {
//						return err
//					}
//					t := cli.Table{Schema: "exp.count/1", Columns: []cli.Column{{Key: "steps"}}}
//					t.Rows = append(t.Rows, []any{n})
//					return a.Out.PrintTable(t)
//				})
//			},
//		}
//	}
//
// The frame reads the global flags, and sorts all flags as the parser wants them. It gives
// the command:
//
//   - the outside (System): arguments, streams, environment, clock, signals;
//   - the store: OpenStore, OpenStoreToWrite, WithStore;
//   - results: Out prints a Table (rows of the same fields) or a Document (one thing
//     with parts) in the format that --output names. A Page is the text of a Document
//     for people;
//   - messages: Warn, Note, Progress and Log, all on stderr;
//   - errors: Failf makes an error with an exit code, Usagef one for bad arguments. Run
//     prints what the Action returns, as text or JSON, and Program.Known tells it what
//     the errors of other packages mean;
//   - completion: Completes makes the hook that proposes words to the shell.
//
// The first SIGINT or SIGTERM cancels the context of the Action, which saves its work and
// returns Stoppedf; OnSignal lets a command take signals otherwise. A panic in the Action
// becomes an error that asks the user to report it.
package cli
