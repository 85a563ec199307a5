// Counts the rows that a query reads, for the query's explanation.

import FirestoreModel
import OrderedStore

/// The number of rows that were read.
struct ReadCost: Sendable {
  /// Index entries and collection group rows.
  var entries = 0
  /// Documents.
  var documents = 0

  static func += (a: inout ReadCost, b: ReadCost) {
    a.entries += b.entries
    a.documents += b.documents
  }

  /// Counts a row as a document or an entry. The first byte of its key distinguishes them.
  fileprivate mutating func count(_ space: UInt8?) {
    if space == FirestoreKeyLayout.documents { documents += 1 } else { entries += 1 }
  }
}

/// A view that counts the rows read through it, during one read.
final class CountingView: ReadView {
  private let view: any ReadView
  private(set) var cost = ReadCost()

  init(_ view: any ReadView) { self.view = view }

  var version: Version { view.version }

  func get(_ key: Key) throws -> VersionedValue? {
    cost.count(key.first)
    return try view.get(key)
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try view.scan(range, reverse: reverse) { key, value, writtenAt in
      cost.count(key.first)
      return try visit(key, value, writtenAt)
    }
  }

  func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws -> HiddenKeys {
    try view.scan(range, reverse: reverse, maximumHidden: limit) { key, value, writtenAt in
      cost.count(key.first)
      return try visit(key, value, writtenAt)
    }
  }
}
