// Package config turns recipes (YAML files, overlays, --set expressions) into
// one resolved, typed configuration, the Run, and knows where every value of it
// came from.
//
// One table (schema.go and the keys_*.go files) holds every key: path, type,
// default, range, unit, which stages read it, whether it can change a result,
// and its help text. Parsing, validation, defaults, identity views, the canonical
// YAML, the JSON schema, completion and documentation are all computed from it;
// no other place knows a default.
//
// # Layers
//
// Values come, later over earlier, from the defaults, the user's own
// configuration (nonsemantic keys only), the file with what it extends, overlays
// from left to right, and --set expressions from left to right. Blocks merge,
// lists replace.
//
// # Variants
//
// Some keys matter only while another key has a certain value: algo.critic.* while
// algo.kind is ppo, for instance (Key.When). A key without effect is an error if
// it stands in the same layer as the switch that turned it off or in a later one;
// if it was inherited from an earlier layer it is dropped, and the resolved
// configuration lists it as dropped. So a child recipe that only says
// algo.kind: ppo does not have to undo its parent's algo.flowrl block. What
// counts is the last layer: switching there and back keeps the inherited key. All
// --set expressions of a command are one layer.
//
// # Identity
//
// A resolved configuration offers views for hashing: Semantic (keys that some
// stage kinds read and that can change a bit of their results) and Protocol
// (eval.final). They hold plain values and every default written out, so leaving
// a default out or writing it down is the same experiment.
//
// # Adding a key
//
// Add a row to the block's keys_*.go, the field of the same path to Run (run.go),
// a check to check.go if it has to fit other keys, and run the tests with -update
// to see it in the golden key list. A key needs a study that used it.
//
// What this package does not do: it opens no data set and no model, so it cannot
// say whether data.train.source exists; Resolved.ErrorAt lets the caller report
// that at the key's place.
package config
