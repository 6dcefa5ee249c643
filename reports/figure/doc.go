// Package figure draws the figures of a report: plain numbers in, one [Figure]
// out, as SVG, as PNG and as the data that were drawn. One file per kind of
// figure (curve.go, passk.go, bar.go, …), each a struct with a Draw method;
// style.go holds the palette and the sizes, panel.go the axes that all share.
//
// Equal inputs give equal bytes: no clock, no random ids, no map order, no fonts
// of the system (Liberation Sans is embedded by gonum). Draw may be called from
// several goroutines at once.
//
// Every figure says in its caption how many seeds stand behind it, what its
// intervals are, in which units its axes count, and what could not be drawn. One
// seed has no band. A figure without a single finite number is [ErrNoData].
//
// It draws with gonum's canvases and fonts and has axes of its own, because
// labels at line ends, legends outside the data and aligned small multiples need
// a layout that is known before the first line is drawn; plot.Plot pads while it
// draws.
//
// It does not read the store, choose what is shown, test hypotheses or interact:
// the dashboard draws for itself.
package figure
