// Compiles a rules file of either product, and decides cases with it.

import FirestoreModel
import RealtimeModel

/// Compiled rules of either product.
package enum TestedRules: Sendable {
  /// Rules of Cloud Firestore.
  case firestore(FirestoreRuleset)
  /// Rules of the Realtime Database.
  case realtime(RealtimeRuleset)

  /// The decision about a case.
  package struct Outcome: Sendable, Hashable {
    /// Whether the rules allow or deny the request.
    package var verdict: RuleVerdict
    /// Why the rules deny the request: rules, lines and values; nil if they allow it.
    package var reason: String?
  }

  /// Whether a text is a rules file of the Realtime Database: its first token is the brace of a JSON object.
  package static func isRealtime(_ source: some Collection<UInt8>) -> Bool {
    var rest = source[...]
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    while let byte = rest.first {
      switch byte {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"):
        rest = rest.dropFirst()
      case UInt8(ascii: "/") where rest.dropFirst().first == UInt8(ascii: "/"):
        rest = rest.drop { $0 != UInt8(ascii: "\n") }
      case UInt8(ascii: "/") where rest.dropFirst().first == UInt8(ascii: "*"):
        rest = rest.dropFirst(2)
        while let byte = rest.first,
          !(byte == UInt8(ascii: "*") && rest.dropFirst().first == UInt8(ascii: "/"))
        {
          rest = rest.dropFirst()
        }
        rest = rest.dropFirst(2)
      default: return byte == UInt8(ascii: "{")
      }
    }
    return false
  }

  /// Compiles a rules file. Its first token decides the product.
  /// - Throws: ``RulesFileError`` with all problems.
  package init(compiling source: [UInt8]) throws(RulesFileError) {
    if Self.isRealtime(source) {
      do throws(RealtimeModel.RulesError) { self = .realtime(try RealtimeRuleset(source)) } catch {
        throw RulesFileError(problems: error.problems.map(\.description))
      }
      return
    }
    guard let text = String(validating: source, as: UTF8.self) else {
      throw RulesFileError(problems: ["the file is not UTF-8"])
    }
    do throws(RulesError) { self = .firestore(try FirestoreRuleset(compiling: text)) } catch {
      throw RulesFileError(problems: error.issues.filter { $0.severity == .error }.map(\.line))
    }
  }

  /// Decides a case.
  /// - Throws: ``RuleCaseError`` for a case that is not one of this product.
  package func decide(_ request: RuleCase) throws(RuleCaseError) -> Outcome {
    switch self {
    case .firestore(let ruleset): try FirestoreCase(request).decide(by: ruleset)
    case .realtime(let ruleset): try RealtimeCase(request).decide(by: ruleset)
    }
  }
}

/// The problems of a rules file that does not compile.
package struct RulesFileError: Error, Sendable, Hashable {
  /// The problems, each `line:column: text`.
  package var problems: [String]
}

extension RulesIssue {
  /// `line:column: text`.
  package var line: String { position.map { "\($0.line):\($0.column): \(text)" } ?? text }
}
