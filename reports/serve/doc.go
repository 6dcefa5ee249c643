// Package serve shows a store in a browser: runs, curves, completions, comparisons,
// reports, lineage and benchmarks. It reads only, needs no file but its own executable,
// and keeps open pages up to date while runs go on.
//
// Every page is a complete HTML document made here, figures included, so that reading
// needs no script. The script (assets/*.js) adds to that: it fetches the page again when
// the store changes and replaces the parts that differ, shows the values under the
// pointer, and reacts to keys. The state of a page is its address.
//
// Files: server.go has the routes, guard.go what keeps others out, page.go the frame of
// a page; then a file per page, with a template of the same name in assets.
package serve
