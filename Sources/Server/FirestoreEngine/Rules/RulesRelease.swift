// A release puts a ruleset in force in one database.

package import FirestoreModel
import OrderedStore

/// A release of rules, as a row of the database that they protect:
///
///     02 | time of the release, microseconds since 1970, 8 bytes | length of the ID, 1 byte | ID of the ruleset | text in UTF-8
///
/// Format 01 has no ID. When a database with such a release is opened, its rules are released again as a ruleset with an ID.
struct RulesRelease: Equatable {
  var microseconds: Int64
  /// The ruleset; empty in a row of format 01.
  var rulesetID: String
  var source: String

  private static let format: UInt8 = 2
  private static let formatWithoutID: UInt8 = 1
  private static let headerBytes = 9

  var encoded: [UInt8] {
    [Self.format] + microseconds.bigEndianBytes + [UInt8(rulesetID.utf8.count)] + Array(rulesetID.utf8)
      + Array(source.utf8)
  }

  /// Decodes a row.
  /// - Throws: DATA_LOSS for a damaged row.
  init(decoding row: [UInt8]) throws(FirestoreError) {
    let damaged = FirestoreError(.dataLoss, "The stored security rules are damaged.")
    guard row.count >= Self.headerBytes else { throw damaged }
    var rest = row[Self.headerBytes...]
    switch row[0] {
    case Self.formatWithoutID: rulesetID = ""
    case Self.format:
      guard let count = rest.popFirst().map({ Int($0) }), count > 0, rest.count >= count,
        let id = String(validating: rest.prefix(count), as: UTF8.self)
      else { throw damaged }
      rulesetID = id
      rest = rest.dropFirst(count)
    default: throw damaged
    }
    guard let source = String(validating: rest, as: UTF8.self) else { throw damaged }
    microseconds = Int64(bigEndianBytes: row[1..<Self.headerBytes])
    self.source = source
  }

  init(source: String, rulesetID: String, at microseconds: Int64) {
    precondition(
      (1...255).contains(rulesetID.utf8.count), "invariant: the ID of a ruleset has 1 to 255 bytes")
    self.source = source
    self.rulesetID = rulesetID
    self.microseconds = microseconds
  }

  /// The release in force at the state of a view; nil if the database never had rules.
  static func stored(_ view: any ReadView) throws -> RulesRelease? {
    try view.get(FirestoreKeyLayout.rules).map { try RulesRelease(decoding: Array($0.value)) }
  }
}

/// A release as operators see it.
package struct ReleaseRecord: Sendable, Hashable {
  /// The ID of the ruleset.
  package var rulesetID: String
  /// The time of the release.
  package var time: Timestamp
  /// Whether the ruleset is still stored, so that it can be released again.
  package var isStored: Bool
}

/// The release in force in a database.
package struct CurrentRelease: Sendable, Hashable {
  /// The ID of the ruleset.
  package var rulesetID: String
  /// The time of the oldest release that the history contains.
  package var createdAt: Timestamp
  /// The time of the release in force.
  package var updatedAt: Timestamp
}
