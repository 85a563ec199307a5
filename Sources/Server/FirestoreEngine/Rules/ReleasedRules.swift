// Security rules as the engine stores and publishes them. The engine does not know their language: the caller that releases
// rules passes the policy that they compile to.

package import Access
import FirestoreModel
import OrderedStore

/// Security rules: their text, and the policy that decides by them.
package struct ReleasedRules: Sendable {
  /// The text of the rules file.
  package var source: String
  /// The policy.
  package var policy: any AccessPolicy<FirestoreAccess>

  /// Makes rules of a text and its compiled form.
  package init(source: String, policy: any AccessPolicy<FirestoreAccess>) {
    self.source = source
    self.policy = policy
  }
}

/// A release of rules, as a row of the database that they protect:
///
///     01 | time of the release, microseconds since 1970, 8 bytes | text in UTF-8
struct RulesRelease: Equatable {
  var microseconds: Int64
  var source: String

  private static let format: UInt8 = 1
  private static let headerBytes = 9

  var encoded: [UInt8] {
    [Self.format] + withUnsafeBytes(of: microseconds.bigEndian) { Array($0) } + Array(source.utf8)
  }

  /// Decodes a row.
  /// - Throws: DATA_LOSS for a damaged row.
  init(decoding row: [UInt8]) throws(FirestoreError) {
    guard row.count >= Self.headerBytes, row[0] == Self.format,
      let source = String(validating: row[Self.headerBytes...], as: UTF8.self)
    else { throw FirestoreError(.dataLoss, "The stored security rules are damaged.") }
    microseconds = row[1..<Self.headerBytes].reduce(0) { $0 << 8 | Int64($1) }
    self.source = source
  }

  init(source: String, at microseconds: Int64) {
    self.source = source
    self.microseconds = microseconds
  }

  /// The release in force at the state of a view; nil if the database never had rules.
  static func stored(_ view: any ReadView) throws -> RulesRelease? {
    try view.get(FirestoreKeyLayout.rules).map { try RulesRelease(decoding: Array($0.value)) }
  }
}
