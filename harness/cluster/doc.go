// Package cluster executes the runs of a study as processes: children of this process,
// or jobs of a batch system.
//
// List turns the plans of runs into jobs. Stages that several runs share become jobs of
// their own, so they are made once; the runs wait for them. A Study knows which of its runs are
// missing, and gives jobs of other machines what they read. Where a run is computed changes
// no bit of it, and nothing here enters a run's id.
package cluster
