// A ruleset is a named source of security rules. It is immutable; a release puts it in force.
//
//     header    08 | id   -> 01 | creation time, microseconds since 1970, 8 bytes
//     content   09 | id   -> for each file: length of the name, 4 bytes | name | length of the text, 4 bytes | text
//
// Header and content have separate rows, so that a list of rulesets does not read their sources.

package import FirestoreModel
import OrderedStore

/// A stored ruleset.
package struct StoredRuleset: Sendable, Hashable {
  /// A file of rules.
  package struct File: Sendable, Hashable {
    /// The name that the uploader gave, such as `firestore.rules`.
    package var name: String
    /// The text.
    package var content: String

    /// Makes a file.
    package init(name: String, content: String) {
      self.name = name
      self.content = content
    }
  }

  /// The name and the creation time of a ruleset, without its files.
  package struct Header: Sendable, Hashable {
    /// The ID that the server assigned.
    package var id: String
    /// The creation time.
    package var createdAt: Timestamp
  }

  /// The name and the creation time.
  package var header: Header
  /// The files; the first one is the rules file that a release puts in force.
  package var files: [File]

  /// The rules file that a release puts in force.
  package var source: String { files.first?.content ?? "" }

  /// Makes a ruleset.
  init(id: String, createdAt: Timestamp, files: [File]) {
    header = Header(id: id, createdAt: createdAt)
    self.files = files
  }
}

extension StoredRuleset.Header {
  private static let format: UInt8 = 1

  var encoded: [UInt8] { [Self.format] + createdAt.microseconds.bigEndianBytes }

  /// Decodes a row.
  /// - Throws: DATA_LOSS for a damaged row.
  init(id: String, decoding row: some Collection<UInt8>) throws(FirestoreError) {
    guard row.count == 9, row.first == Self.format else { throw .damagedRuleset }
    self.init(id: id, createdAt: Timestamp(microseconds: Int64(bigEndianBytes: row.dropFirst())))
  }
}

extension [StoredRuleset.File] {
  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    for file in self {
      for text in [file.name, file.content] {
        let count = UInt32(text.utf8.count)
        bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) }
        bytes += text.utf8
      }
    }
    return bytes
  }

  /// Decodes a row.
  /// - Throws: DATA_LOSS for a damaged row.
  init(decoding row: [UInt8]) throws(FirestoreError) {
    self = []
    var rest = row[...]
    func text() throws(FirestoreError) -> String {
      guard rest.count >= 4 else { throw .damagedRuleset }
      let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      guard rest.count >= count, let text = String(validating: rest.prefix(count), as: UTF8.self) else {
        throw .damagedRuleset
      }
      rest = rest.dropFirst(count)
      return text
    }
    while !rest.isEmpty { append(StoredRuleset.File(name: try text(), content: try text())) }
  }
}

extension FirestoreError {
  fileprivate static let damagedRuleset = FirestoreError(.dataLoss, "A stored ruleset is damaged.")
}

extension Int64 {
  /// The eight bytes of the number, the most significant first.
  var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

  /// Joins at most eight bytes, the most significant first.
  init(bigEndianBytes bytes: some Sequence<UInt8>) { self = bytes.reduce(0) { $0 << 8 | Int64($1) } }
}
