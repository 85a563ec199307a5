// The text of a denial that an emulator sends to clients, in the form of Google's emulator. It has the line of each allow
// statement, and no value of a stored document.
//
// Google's emulator evaluates most requests twice and lists the reasons of both evaluations. This text lists each
// reason once.

import FirestoreModel

extension DenialExplanation {
  /// The text of a denial without any statement for the method.
  private static let noStatement = "No matching allow statements"
  /// The maximum number of characters, so that the text fits into the trailers of a response.
  private static let maximumCount = 2000

  /// The denial in the form of Google's emulator: `false for 'get' @ L5`.
  package var text: String { Self.text(of: [self]) }

  /// The text of one denial with the statements for several methods.
  static func text(of explanations: [DenialExplanation]) -> String {
    let reasons = explanations.flatMap { explanation in
      explanation.statements.map { $0.text(for: explanation.method) }
    }
    guard !reasons.isEmpty else { return noStatement }
    return String(("\n" + reasons.joined(separator: ", ")).prefix(maximumCount))
  }
}

extension DenialExplanation.Statement {
  /// The outcome and the position of the statement.
  fileprivate func text(for method: RuleMethod) -> String {
    let subject = "for '\(method.rawValue)' @ L\(position.line)"
    guard let fault else { return "false \(subject)" }
    guard fault == .undecided, let faultPosition else { return "\(fault.text) \(subject)" }
    return "evaluation error at L\(faultPosition.line):\(faultPosition.column) \(subject)"
  }
}

extension FirestoreRuleset {
  /// The text of a denial for the clients of an emulator; nil if the operation is allowed.
  ///
  /// A write without a precondition may create or update its document: the text has the statements for both methods.
  /// - Throws: any error that reading a document through `context` throws.
  package func denialText(_ operation: RuleOperation, _ context: Context) throws -> String? {
    let steps = try steps(operation, context)
    guard
      let denial = denial(
        of: steps, lookups(for: operation, steps, context), workLimit(for: operation, context))
    else { return nil }
    var explanations = [explain(denial)]
    if case .changes(let changes) = operation, !changes[denial.index].isConditional,
      let other = changes[denial.index].method.opposite, case .document(var request) = denial.step
    {
      request.method = other
      explanations.insert(
        explain(Denial(step: .document(request), lookups: denial.lookups, work: denial.work)),
        at: other == .create ? 0 : 1)
    }
    return DenialExplanation.text(of: explanations)
  }
}

extension RuleMethod {
  /// The method that the same write would need if the document existed instead of being missing, or the reverse:
  /// `update` for `create`, and `create` for `update`. Nil for other methods.
  fileprivate var opposite: RuleMethod? {
    switch self {
    case .create: .update
    case .update: .create
    case .get, .list, .delete: nil
    }
  }
}
