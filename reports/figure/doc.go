// Package figure draws the figures of a report: plain numbers in, one [Figure] out, as
// SVG, PNG and data. Each kind of figure has a file (curve.go, passk.go, bar.go, …) with
// a struct and its Draw method; style.go holds the palette and the sizes, panel.go the
// shared axes.
//
// Equal inputs give equal bytes: no clock, no random ids, no map order, no system fonts
// (gonum embeds Liberation Sans). Draw is safe for concurrent use.
//
// Every caption gives the number of seeds, the kind of intervals, the units of the axes,
// and the values that could not be drawn. One seed has no band. A figure without a finite
// number is [ErrNoData].
//
// It uses gonum's canvases and fonts but its own axes: labels at line ends, legends
// outside the data and aligned small multiples need a layout that is known before
// drawing, while plot.Plot pads as it draws.
//
// It does not read the store, choose what to show, test hypotheses or interact; the
// dashboard has its own drawing code.
package figure
