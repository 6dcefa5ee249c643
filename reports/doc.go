// Package reports turns recorded runs into a report that can be read, sent and checked:
// one self-contained folder.
//
//	index.html          the report, with style and figures inside; no network, no scripts
//	report.md           the same for GitHub, with figures as links
//	data.json           every number shown
//	figures/NN-name.*   each figure as SVG and PNG
//	configs/ARM.yaml    the arms' configurations, to run them again
//	manifest.json       inputs, waivers and versions, and a digest of each file
//
// New reads the store, Report.Bundle renders, Bundle.WriteTo writes the folder. Equal
// records give equal bytes: no clock, no map order, no wall-clock times except those the
// runs recorded.
//
// reports/compare computes the statistics and reports/figure draws; this package chooses,
// orders, words and lays out. Both renderings come from one page (page.go), so they
// cannot disagree. It does not decide what may be compared, write PDF or TeX, or serve
// anything.
package reports
