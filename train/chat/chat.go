// Package chat renders the chat templates of published models: it turns messages into the
// text of a prompt. It interprets the part of Jinja2 that such templates use, with Python's
// semantics, as Hugging Face's transformers configures Jinja2: immutable sandbox,
// trim_blocks, lstrip_blocks, break and continue, the generation tag, tojson as json.dumps.
//
// A template is untrusted input. Rendering limits steps, output, text, integers and
// nesting; it reads no file, no clock and no environment. An unsupported construct is an
// error that names it with line and column; nothing is approximated. Not supported:
// include, import, extends, autoescape, required blocks, and the filters random and urlize.
//
// [Parse] reads a template, [Template.Render] writes the prompt of a list of messages,
// [Template.RenderVars] renders with arbitrary variables. [SelectTemplate] finds the
// template in the files of a model; [EndOfTurn] and [CheckPrefix] tell how a template ends
// a turn and whether turns can be appended.
package chat

// Limits of a template and of one rendering. Each is far above the needs of published
// templates and low enough to stop a hostile one within a second.
const (
	maxSource     = 1 << 20   // bytes of a template
	maxSteps      = 1_000_000 // evaluated nodes, visited elements and 128-byte pieces of produced text
	maxOutput     = 16 << 20  // bytes of the output and of any intermediate string
	maxDepth      = 64        // nesting of statements, of expressions, and of macro calls
	maxChain      = 100       // links of one chain such as a.b.c or x|f|g
	maxValueDepth = 256       // nesting of lists and dicts that are printed, compared or decoded
	maxBits       = 1 << 17   // size of an integer
	maxDigits     = 4300      // digits of an integer as text, as in Python
	maxRange      = 100_000   // length of a range, as in Jinja2's sandbox
	textPerStep   = 128       // bytes of produced text that count as one step
)
