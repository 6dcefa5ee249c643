// Package reports turns recorded runs into a report that can be read, sent and
// checked: one folder that needs nothing beside it.
//
//	index.html          the report, with style and figures inside; no network, no scripts
//	report.md           the same for GitHub, with figures as links
//	data.json           every number that is shown
//	figures/NN-name.*   each figure as SVG and PNG
//	configs/ARM.yaml    the arms' configurations, to run them again
//	manifest.json       inputs, waivers and versions, and a digest of each file
//
// New reads the store, Report.Bundle renders, Bundle.WriteTo puts the folder in its
// place. Equal records give equal bytes: no clock, no map order, and of wall-clock
// time only what the runs recorded.
//
// Statistics are reports/compare's and figures reports/figure's: this package
// chooses, orders, words and lays out. Both renderings are made from one page
// (page.go), so they cannot say different things. It does not decide what may be
// compared, write PDF or TeX, or serve anything.
package reports
