package grade

import "exp/eval/grade/formula"

// mostNames bounds the names of sets in a law.
const mostNames = 6

// sameSets reports whether two sets that unions, intersections and differences make of named ones are equal whatever
// these are. Each element is in some of the named sets and not in the others: A∪(B∩C) and (A∪B)∩(A∪C) agree on all.
func sameSets(g, p *formula.Expr) bool {
	names := formula.Variables(g, p)
	if len(names) == 0 || len(names) > mostNames || !isMadeOfNames(g) || !isMadeOfNames(p) {
		return false
	}
	for in := range 1 << len(names) {
		member := map[string]bool{}
		for i, v := range names {
			member[v] = in>>i&1 == 1
		}
		if isMember(g, member) != isMember(p, member) {
			return false
		}
	}
	return true
}

func isMadeOfNames(x *formula.Expr) bool {
	switch x.Op {
	case formula.Sym:
		return x.Name == formula.Empty || len(formula.Variables(x)) == 1
	case formula.Union, formula.Intersection, formula.Without:
		return isMadeOfNames(x.Args[0]) && isMadeOfNames(x.Args[1])
	}
	return false
}

// isMember reports whether an element that is in some named sets is in x.
func isMember(x *formula.Expr, member map[string]bool) bool {
	switch x.Op {
	case formula.Union:
		return isMember(x.Args[0], member) || isMember(x.Args[1], member)
	case formula.Intersection:
		return isMember(x.Args[0], member) && isMember(x.Args[1], member)
	case formula.Without:
		return isMember(x.Args[0], member) && !isMember(x.Args[1], member)
	}
	return member[x.Name]
}
