#!/usr/bin/env python3
"""Seeded faults in the Firestore rules: applies small mutations one at a time and runs the module's tests on each.

    python3 scripts/mutations.py [--list] [--only NAME[,NAME]] [--command COMMAND]

A mutation is caught if the build or the tests fail. Each one costs a build and a test run of about a minute. The file is
restored afterwards, also on Ctrl-C; work with a clean tree. `make test` does not run this.
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = ROOT / "Sources" / "Server" / "SecurityRules"
COMMAND = "swift build --build-tests && swift test --skip-build --filter '^SecurityRulesTests\\.'"

# Name, file, original text (which occurs exactly once) and its replacement.
MUTATIONS = [
    # Parser and lexer.
    ("precedence-of-and", "Language/Parser+Expressions.swift", "(.and, Precedence.and)", "(.and, Precedence.or)"),
    ("precedence-of-less", "Language/Parser+Expressions.swift", "(.less, Precedence.order)", "(.less, Precedence.sum)"),
    # Checker.
    ("let-in-version-1", "Language/FunctionChecker.swift", "if tree.version == .one {", "if false {"),
    ("parameters", "Language/FunctionChecker.swift", "maximumParameters = 7", "maximumParameters = 8"),
    ("lets", "Language/FunctionChecker.swift", "maximumLets = 11", "maximumLets = 12"),
    ("call-depth", "Language/FunctionChecker.swift", "maximumCallDepth = 21", "maximumCallDepth = 22"),
    ("nesting", "Language/Checker.swift", "maximumDepth = 99", "maximumDepth = 100"),
    ("pattern-depth", "Language/PatternChecker.swift", "maximumDepth = 10", "maximumDepth = 11"),
    ("pattern-segments", "Language/PatternChecker.swift", "maximumSegments = 100", "maximumSegments = 101"),
    ("pattern-wildcards", "Language/PatternChecker.swift", "maximumWildcards = 20", "maximumWildcards = 21"),
    # Matching of paths.
    ("rest-version-1", "FirestoreRules/Program/MatchPattern.swift", "minimumRest = version == .one ? 1 : 0", "minimumRest = 0"),
    ("literal-of-query", "FirestoreRules/Program/MatchPattern.swift", "if position == count - 1, !isDocumentKnown { return false }", ""),
    ("group-rest", "FirestoreRules/Program/MatchPattern.swift", "rest <= parent.count + 3,", "rest <= parent.count + 4,"),
    ("group-end", "FirestoreRules/Program/MatchPattern.swift", "segments.count - rest <= 3", "segments.count - rest <= 4"),
    ("unknown-wildcard", "FirestoreRules/Program/MatchPattern.swift", "isUnknown ? .constraint(.unbound) : .text(Self.segment(position, database, path)))", ".text(Self.segment(position, database, path)))"),
    # Evaluator.
    ("and-absorbs", "FirestoreRules/Evaluation/RuleEvaluator.swift", "if try !bool(left) { return false }", "if try !bool(left) { throw Failure(fault: .nullValue, node: id) }"),
    ("or-left-fault", "FirestoreRules/Evaluation/RuleEvaluator.swift", "do { if try bool(right) { return true } } catch { throw failure ?? error }\n    if let failure { throw failure }\n    return false", "do { if try bool(right) { return true } } catch { throw failure ?? error }\n    return false"),
    ("not-of-other", "FirestoreRules/Evaluation/RuleEvaluator.swift", "return .bool(!result)", "return .bool(result)"),
    ("unbound", "FirestoreRules/Evaluation/RuleEvaluator.swift", "constraint.isUnbound {", "constraint.isUnbound, slot < 0 {"),
    ("resource-of-time", "FirestoreRules/Evaluation/RuleEvaluator.swift", "if member == .time { readsTime = true }", ""),
    ("strict-in", "FirestoreRules/Evaluation/RuleEvaluator+Operators.swift", "RuleEquality.strict.equal(list[index], element)", "RuleEquality.operands.equal(list[index], element)"),
    ("constraint-in-list", "FirestoreRules/Evaluation/RuleEvaluator+Operators.swift", "if case .constraint = element { return false }", "if case .constraint = element { return true }"),
    ("mirrored", "FirestoreRules/Evaluation/RuleEvaluator+Operators.swift", "case .less: .greater\n", "case .less: .less\n"),
    ("nan-order", "FirestoreRules/Evaluation/RuleEvaluator+Operators.swift", "if first.isNumber, second.isNumber { return false }", "if first.isNumber, second.isNumber { return true }"),
    ("remainder", "FirestoreRules/Evaluation/RuleEvaluator+Operators.swift", "(b == -1 ? 0 : a % b, false)", "(b == -1 ? 1 : a % b, false)"),
    ("after-writes", "FirestoreRules/Evaluation/RuleEvaluator+Calls.swift", "fields = afterWrites ? own.after : own.before", "fields = own.after"),
    ("unreadable", "FirestoreRules/Evaluation/RuleEvaluator+Calls.swift", "if lookups.failure != nil { budget.exhaust() }", ""),
    ("lookup-limit", "FirestoreRules/Evaluation/RuleLookups.swift", "maximumOfOperation = 10", "maximumOfOperation = 11"),
    ("shared-work", "FirestoreRules/Decision/FirestoreRuleset.swift", "work = evaluator.budget.work", ""),
    ("exhausted-continues", "FirestoreRules/Evaluation/RuleBudget.swift", "guard work >= count else {\n      work = 0\n", "guard work >= count else {\n"),
    ("duration-least", "FirestoreRules/Values/RuleDuration.swift", "total.magnitude < maximum ||", "true ||"),
    ("hash-of-maps", "FirestoreRules/Values/RuleKeys.swift", "entry.value.hash(into: &hasher, equality)\n", "\n"),
    # Decisions.
    ("first-grant", "FirestoreRules/Decision/FirestoreRuleset.swift", "if try evaluator.bool(statement.condition) { return true }", "return try evaluator.bool(statement.condition)"),
    ("every-step", "FirestoreRules/Decision/FirestoreRuleset.swift", "decision.deniedOperation = index\n        break", "decision.deniedOperation = index\n        return RuleDecision(isAllowed: true, readsTime: false, dependencies: [])"),
    ("net-delete", "FirestoreRules/Decision/NetWrite.swift", "if first.kind == .delete { return .update }", ""),
    ("net-precondition", "FirestoreRules/Decision/NetWrite.swift", "return requiresExistence ? .update : .create", "return requiresExistence ? .create : .update"),
    # The query proof.
    ("unsatisfiable", "FirestoreRules/Decision/QueryProof.swift", "guard filter.op == .equal, !isUnsatisfiable(filter) else", "guard filter.op == .equal else"),
    ("exact-of-two", "FirestoreRules/Decision/QueryProof.swift", "if terms.count == 1, let value", "if let value"),
    ("in-knows", "FirestoreRules/Decision/QueryProof.swift", "case .isIn, .arrayContainsAny: return []", "case .isIn, .arrayContainsAny: return [(.equal, value)]"),
    ("greater-implies", "FirestoreRules/Values/RuleConstraint.swift", "return [.greater, .greaterOrEqual, .notEqual].contains(op) && order != .ascending", "return [.greater, .greaterOrEqual, .notEqual].contains(op)"),
    ("float-implies-int", "FirestoreRules/Values/RuleConstraint.swift", "if case .float = bound, case .int = value {", "if case .float = bound, case .int = value, op == .in {"),
    ("contains-by-value", "FirestoreRules/Values/RuleConstraint.swift", "guard known != .contains else { return false }", ""),
    # Regular expressions.
    ("case-orbits", "Matching/UnicodeSets.swift", "if set.contains(0x6B) || set.contains(0x4B) { ranges.append(0x212A...0x212A) }", ""),
    ("whole-text", "Matching/RE2Pattern.swift", "node, .assertion(.textEnd)])", "node])"),
    ("lazy", "Matching/RE2Pattern.swift", "isGreedy: isLazy == flags.isUngreedy)", "isGreedy: true)"),
]


def check():
    """Each mutation must apply to exactly one place."""
    wrong = []
    for name, path, old, new in MUTATIONS:
        count = (RULES / path).read_text().count(old)
        if count != 1 or old == new:
            wrong.append(f"{name}: its text occurs {count} times in {path}")
    return wrong


def run(mutation, command):
    name, path, old, new = mutation
    file = RULES / path
    original = file.read_text()
    try:
        file.write_text(original.replace(old, new))
        result = subprocess.run(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    finally:
        file.write_text(original)
    how = "build" if "error:" in result.stdout and "Test run" not in result.stdout else "tests"
    print(f"{name}: {'caught by the ' + how if result.returncode else 'NOT CAUGHT'}", flush=True)
    return result.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the mutations")
    parser.add_argument("--only", default="", help="the names of the mutations to run")
    parser.add_argument("--command", default=COMMAND, help="builds and tests; fails if a test fails")
    options = parser.parse_args()
    wrong = check()
    if wrong:
        sys.exit("\n".join(wrong))
    wanted = [name for name in options.only.split(",") if name]
    chosen = [m for m in MUTATIONS if not wanted or m[0] in wanted]
    if options.list:
        for name, path, _, _ in chosen:
            print(f"{name}: {path}")
        return
    caught = sum(run(mutation, options.command) for mutation in chosen)
    print(f"mutations: {caught} of {len(chosen)} caught")
    sys.exit(0 if caught == len(chosen) else 1)


if __name__ == "__main__":
    main()
