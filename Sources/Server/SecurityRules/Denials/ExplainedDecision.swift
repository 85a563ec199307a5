// Explains why the rules of either product denied an operation, in one form for logs and endpoints. An explanation is
// never sent to a client, because it contains values of stored documents.

import FirestoreModel
package import JSON

/// Why rules deny an operation.
package struct ExplainedDecision: Sendable {
  /// The maximum number of statements in an explanation. A write may evaluate a rule for each written location.
  static let maximumStatements = 32
  /// The maximum number of expressions in the explanation of one statement.
  static let maximumTerms = 64

  /// The method that the operation needs: `get`, `list`, `create`, `update` or `delete`; `read` or `write` in the
  /// Realtime Database.
  package var method: String
  /// The path of the denied document, collection or location.
  package var path: String
  /// The evaluated statements or rules that are not true; none if no rule covers the path.
  package var statements: [ExplainedStatement]

  /// The explanation as JSON.
  package var json: JSONValue {
    .object([
      "method": .string(method), "path": .string(path), "statements": .array(statements.map(\.json)),
    ])
  }
}

/// An allow statement, or a rule of the Realtime Database, that is not true.
package struct ExplainedStatement: Sendable {
  /// The position of the statement.
  package var position: SourcePosition
  /// The kind of the rule, such as `.read`; nil for an allow statement.
  package var rule: String?
  /// The location for which the rule was evaluated; nil for an allow statement.
  package var location: String?
  /// Why the condition has no value; nil if it is false.
  package var fault: ExplainedFault?
  /// The deciding expressions, outermost first.
  package var terms: [DenialExplanation.Term]

  var json: JSONValue {
    var object = position.json
    if let rule { object["rule"] = .string(rule) }
    if let location { object["location"] = .string(location) }
    object["outcome"] = .string(fault == nil ? "false" : "error")
    if let fault { object["fault"] = .object(fault.json) }
    object["expressions"] = .array(
      terms.map { term in
        var object = term.position.json
        object["expression"] = .string(term.expression)
        object["value"] = .string(term.value)
        return .object(object)
      })
    return .object(object)
  }
}

/// Why a condition has no value.
package struct ExplainedFault: Sendable {
  /// The fault in words.
  package var text: String
  /// The position of the expression with the fault; nil if it is unknown.
  package var position: SourcePosition?
  /// The field that does not exist; nil for another fault.
  package var missingField: String?
  /// The exhausted budget: `expressions`, `documents`, `work` or `steps`; nil for another fault.
  package var exhaustedBudget: String?

  var json: JSONObject {
    var object: JSONObject = ["text": .string(text)]
    if let position { for member in position.json.members { object[member.key] = member.value } }
    if let missingField { object["missingField"] = .string(missingField) }
    if let exhaustedBudget { object["exhaustedBudget"] = .string(exhaustedBudget) }
    return object
  }
}

extension SourcePosition {
  /// The position as JSON.
  var json: JSONObject { ["line": .int(Int64(line)), "column": .int(Int64(column))] }
}

extension ExplainedDecision {
  /// Converts an explanation of a denial by Firestore rules.
  init(_ explanation: DenialExplanation) {
    method = explanation.method.rawValue
    path = explanation.path.description
    statements = explanation.statements.prefix(Self.maximumStatements).map { statement in
      ExplainedStatement(
        position: statement.position, rule: nil, location: nil,
        fault: statement.fault.map { ExplainedFault($0, at: statement.faultPosition) }, terms: statement.terms
      )
    }
  }
}

extension ExplainedFault {
  /// Converts a fault of Firestore rules.
  fileprivate init(_ fault: RuleFault, at position: SourcePosition?) {
    text = fault.text
    self.position = position
    switch fault {
    case .undefinedProperty(let name): missingField = name
    case .expressionLimit: exhaustedBudget = "expressions"
    case .lookupLimit: exhaustedBudget = "documents"
    case .workLimit: exhaustedBudget = "work"
    default: break
    }
  }
}
