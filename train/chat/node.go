package chat

// expr is an expression of a template; pos is a byte offset in its source.
type expr interface {
	eval(st *state, f *frame) (Value, error)
	offset() int
}

type position int

func (p position) offset() int { return int(p) }

// ref is the place of a variable: a slot of the frame up levels out.
type ref struct{ up, slot int }

type (
	constExpr struct {
		position
		v Value
	}
	nameExpr struct {
		position
		name string
		ref  ref
	}
	// attrTarget is ns.attr on the left side of a set.
	attrTarget struct {
		position
		name, attr string
		ref        ref
	}
	tupleExpr struct {
		position
		items []expr
	}
	listExpr struct {
		position
		items []expr
	}
	dictExpr struct {
		position
		keys, vals []expr
	}
	condExpr struct {
		position
		then, test, els expr // els is nil without else
	}
	// logicExpr is a and b and … or a or b or …
	logicExpr struct {
		position
		or    bool
		items []expr
	}
	notExpr struct {
		position
		x expr
	}
	// chainExpr is first op x op y …, evaluated left to right: arithmetic operators of one
	// precedence, or comparisons, each with its neighbour.
	chainExpr struct {
		position
		compare bool
		first   expr
		ops     []string
		args    []expr
	}
	concatExpr struct {
		position
		items []expr
	}
	signExpr struct {
		position
		neg bool
		x   expr
	}
	attrExpr struct {
		position
		x    expr
		name string
	}
	itemExpr struct {
		position
		x, key expr
	}
	sliceExpr struct {
		position
		start, stop, step expr // nil where left out
	}
	callExpr struct {
		position
		fn   expr
		args callArgs
	}
	filterExpr struct {
		position
		x    expr // nil: the text of the enclosing block
		name string
		fn   builtin // nil: unknown, an error when called
		args callArgs
	}
	testExpr struct {
		position
		x    expr
		name string
		fn   builtin
		args callArgs
	}
)

// callArgs are the arguments of a call: f(pos…, names=kw…, *star, **stars).
type callArgs struct {
	pos         []expr
	names       []string
	kw          []expr
	star, stars expr
}

// stmt is a statement. The returned signal tells the enclosing loop what to do.
type stmt interface {
	exec(st *state, f *frame) (signal, error)
}

type signal uint8

const (
	goOn signal = iota
	breakLoop
	nextRound
)

// scope lists the variables of a block and their initial values.
type scope []load

type loadKind uint8

const (
	loadParam   loadKind = iota // set on entry
	loadGlobal                  // the rendering's variable of that name
	loadAlias                   // the variable of the enclosing scope
	loadTop                     // the template's own variable, else the rendering's
	loadMissing                 // nothing
)

type load struct {
	slot int
	kind loadKind
	name string
	from ref
}

type (
	outputStmt struct{ parts []expr } // text is a constExpr
	ifStmt     struct {
		tests  []expr // if and elifs
		bodies [][]stmt
		els    []stmt
	}
	forStmt struct {
		position
		target     expr
		iter, test expr // test is nil without if
		body, els  []stmt
		hasElse    bool
		recursive  bool

		fn                             *funcInfo // of each round of a recursive loop; else nil
		loop                           *ref      // slot of loop; nil if unused
		bodyScope, testScope, elsScope scope
	}
	macroStmt struct {
		position
		name string
		ref  ref
		def  *macroDef
	}
	callStmt struct {
		position
		call       *callExpr // nil: the generation tag
		def        *macroDef
		generation bool
	}
	filterStmt struct {
		filter *filterExpr
		body   []stmt
		scope  scope
	}
	setStmt struct {
		position
		target, value expr
	}
	setBlockStmt struct {
		position
		target expr
		filter *filterExpr // nil without
		body   []stmt
		scope  scope
	}
	withStmt struct {
		targets, values []expr
		body            []stmt
		scope           scope
	}
	blockStmt struct {
		position
		name   string
		scoped bool // sees the variables around it, not only the template's
		body   []stmt

		fn    *funcInfo
		up    int // frames from the block's place to the one it sees
		scope scope
	}
	jumpStmt struct {
		position
		signal signal
	}
)

// macroDef is the definition of a macro or a call block.
type macroDef struct {
	name     string // empty for a call block
	args     []*nameExpr
	defaults []expr // of the last arguments
	body     []stmt

	fn                      *funcInfo
	scope                   scope
	caller, kwargs, varargs *ref // their slots; nil if unused
	explicitCaller          bool
}

func (d *macroDef) defaultOf(i int) expr {
	if j := i - (len(d.args) - len(d.defaults)); j >= 0 {
		return d.defaults[j]
	}
	return nil
}
