// Tests rules whose work would grow with the square of a list's length, or exponentially. Without limits these tests
// would take minutes, or all memory.

import FirestoreModel
import SecurityRules
import Testing

@Suite(.timeLimit(.minutes(1))) struct RuleWorkTests {
  private func allows(_ condition: String, functions: String = "", fields: MapValue? = nil) throws -> Bool {
    try ruleset(allowing: condition, functions: functions)
      .decideGet([("c/x", fields)], context()).isAllowed
  }

  private func text(_ count: Int) -> Value { .string(String(repeating: "a", count: count)) }

  @Test("a rule cannot double a path without limit")
  func pathDoubling() throws {
    let lets = (1...11).map { "let p\($0) = /$(p\($0 - 1))/$(p\($0 - 1));" }.joined(separator: " ")
    let chain = (1...8).map { level in
      "function f\(level)(p0) { \(lets) return \(level == 8 ? "p11 is path" : "f\(level + 1)(p11)"); }"
    }
    #expect(try !allows("f1(/a/b)", functions: chain.joined(separator: "\n")))
    #expect(try allows("f8(/a)", functions: chain.joined(separator: "\n")))
  }

  @Test("values that differ only in a part have different hashes")
  func hashes() throws {
    let count = 10_000
    let lists: [Value] = [
      .array((0..<count).map { .map(["a": .integer(Int64($0))]) }),
      .array((0..<count).map { .vector([Double($0)]) }),
      .array((0..<count).map { .integer(Int64.max - Int64($0)) }),
    ]
    for list in lists {
      let fields: MapValue = ["l": list]
      #expect(try allows("resource.data.l.toSet().size() == \(count)", fields: fields))
      #expect(try allows("resource.data.l.hasAll(resource.data.l)", fields: fields))
    }
  }

  @Test("many values that do not equal themselves, such as NaN, do not slow a search down")
  func unequalValues() throws {
    let fields: MapValue = [
      "ones": .array(Array(repeating: .double(1), count: 10_000)),
      "integers": .array(Array(repeating: .integer(1), count: 10_000)),
      "nan": .array(Array(repeating: .double(.nan), count: 10_000)),
      "vectors": .array(Array(repeating: .vector([.nan]), count: 10_000)),
    ]
    #expect(try allows("!resource.data.ones.hasAny(resource.data.integers)", fields: fields))
    #expect(try allows("!resource.data.nan.hasAny(resource.data.nan)", fields: fields))
    #expect(try allows("resource.data.nan.removeAll(resource.data.nan).size() == 10000", fields: fields))
    #expect(try allows("!resource.data.vectors.hasAny(resource.data.vectors)", fields: fields))
    #expect(try allows("resource.data.vectors.toSet().size() == 1", fields: fields))
  }

  @Test(
    "the size, groups, classes and compilation of a pattern count against the budget; a large pattern exhausts it",
    arguments: [
      String(repeating: "(a)", count: 3_000), String(repeating: "(?i)\\p{L}", count: 1_000),
      "[" + String(repeating: "[:a", count: 200_000) + "]", String(repeating: "a", count: 1_000_000),
      String(repeating: "\\pL", count: 5_000), "\\Q" + String(repeating: "é", count: 400_000),
    ])
  func patterns(pattern: String) throws {
    let fields: MapValue = ["p": .string(pattern)]
    #expect(try !allows("'a'.replace(resource.data.p, '') is string || true", fields: fields))
    // split() records no groups.
    guard !pattern.hasPrefix("(a)") else { return }
    #expect(try !allows("'a'.split(resource.data.p) is list || true", fields: fields))
  }

  @Test("a pattern of moderate size from a document is matched")
  func moderatePatterns() throws {
    let fields: MapValue = ["p": "(?i)[a-z\\pL]+@(\\w+\\.)+[a-z]{2,8}", "t": "Jane@mail.example.com"]
    #expect(try allows("resource.data.t.matches(resource.data.p)", fields: fields))
    #expect(try allows("'a1b22c'.replace('(\\\\d)+', '-') == 'a-b-c'"))
  }

  @Test("every use of a long text counts its length against the budget, also a repeated use")
  func longTexts() throws {
    let fields: MapValue = ["t": text(900_000), "l": .array(Array(repeating: .string("a"), count: 20_000))]
    let uses = [
      "resource.data.t < resource.data.t", "resource.data.t[899999] == 'b'", "resource.data.t.lower() == ''",
      "hashing.sha256(resource.data.t) == b''", "int(resource.data.t) == 1", "float(resource.data.t) == 1.0",
      "timestamp.value(resource.data.t) == request.time", "path(resource.data.t) == /a",
      "resource.data.l.join(resource.data.t) == ''", "resource.data.t.replace('a', 'b') == ''",
      "resource.data.t.split('a').size() == 7", "resource.data.t.toUtf8().toBase64() == ''",
    ]
    for use in uses {
      let condition = Array(repeating: "(\(use))", count: 60).joined(separator: " || ")
      #expect(try !allows("\(condition) || true", fields: fields), "\(use)")
    }
  }

  @Test("after the budget is exhausted no condition allows, not even a constant")
  func exhaustion() throws {
    let fields: MapValue = ["t": text(1_000_000)]
    #expect(try !allows("resource.data.t.matches('(a*)*(a|b)*c') || true", fields: fields))
    #expect(try allows("resource.data.t.size() == 1000000", fields: fields))
  }

  @Test("each document of a commit has a separate limit of work; a query's disjuncts share one limit")
  func workOfDocuments() throws {
    let rules = try FirestoreRuleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{d}/documents/c/{id} {
            allow create: if request.resource.data.t.matches('a*');
            allow list: if resource.data.t.matches('a*');
          }
        }
        """)
    let changes = (0..<100).map { index in
      RuleChange(
        path: ResourcePath(["c", "x\(index)"]), method: .create, before: nil, after: ["t": text(20_000)])
    }
    #expect(rules.decideChanges(changes, context()).isAllowed)
    func query(_ count: Int) -> RuleQuery {
      RuleQuery(
        parent: .root, collectionID: "c",
        alternatives: (0..<count).map {
          [.field(FieldFilter(FieldPath(field: "t"), .equal, text(20_000 - $0)))]
        })
    }
    #expect(try rules.decideQuery(query(1), context()).isAllowed)
    let denied = try rules.decideQuery(query(100), context())
    #expect(!denied.isAllowed && (denied.deniedOperation ?? 0) > 1)
    let explanation = try #require(try rules.explainQuery(query(100), context()))
    #expect(explanation.statements.map(\.fault) == [.workLimit])
  }

  @Test("evaluation ends at a depth that does not overflow the stack of a thread, also through functions")
  func depth() throws {
    func denial(levels: Int, functions count: Int) throws -> DenialExplanation.Statement? {
      let functions = (1...count).map { number in
        let inner = number == count ? "true" : "f\(number + 1)()"
        return "function f\(number)() { return \(String(repeating: "!", count: levels))\(inner); }"
      }
      let rules = try ruleset(allowing: "f1()", functions: functions.joined(separator: "\n"))
      let isAllowed = rules.decideGet([("c/x", nil)], context()).isAllowed
      return isAllowed ? nil : rules.explainGet("c/x", nil, context()).statements.first
    }
    #expect(try denial(levels: 90, functions: 2) == nil)
    let denied = try #require(try denial(levels: 90, functions: 10))
    #expect(denied.fault == .expressionLimit)
    #expect(denied.faultPosition != nil)
  }

  @Test("extreme numbers in a document cause errors, never traps")
  func extremeNumbers() throws {
    for number in [Int64.min, .min + 1, .max] {
      let fields: MapValue = ["n": .integer(number)]
      for use in [
        "duration.value(resource.data.n, 's')", "duration.value(resource.data.n, 'ms')",
        "duration.value(resource.data.n, 'w')", "duration.time(0, 0, resource.data.n, 0)",
        "duration.time(0, 0, resource.data.n, resource.data.n)", "timestamp.value(resource.data.n)",
        "timestamp.date(resource.data.n, 1, 1)", "math.abs(resource.data.n) / 0", "[1][resource.data.n]",
        "'a'[resource.data.n:resource.data.n]", "'a'[0:resource.data.n]", "resource.data.n / -1 * 2",
      ] {
        #expect(try !allows("\(use) == null", fields: fields), "\(use) of \(number)")
      }
      #expect(try allows("resource.data.n % -1 == 0", fields: fields))
      #expect(try allows("duration.value(resource.data.n, 'ns') is duration", fields: fields))
    }
  }
}
