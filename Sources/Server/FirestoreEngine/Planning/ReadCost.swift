// What a query's answer took: rows looked at, counted where they are read.

import FirestoreModel
import OrderedStore

/// The rows that were looked at.
struct ReadCost: Sendable {
  /// Index and group entries.
  var entries = 0
  /// Documents.
  var documents = 0

  static func += (a: inout ReadCost, b: ReadCost) {
    a.entries += b.entries
    a.documents += b.documents
  }

  /// Counts a row by its key.
  fileprivate mutating func note(_ space: UInt8?) {
    if space == KeyLayout.documents { documents += 1 } else { entries += 1 }
  }
}

/// A view that counts what is read through it. Used inside one read.
final class CountingView: ReadView {
  private let view: any ReadView
  private(set) var cost = ReadCost()

  init(_ view: any ReadView) { self.view = view }

  var version: Version { view.version }

  func get(_ key: Key) throws -> VersionedValue? {
    cost.note(key.first)
    return try view.get(key)
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try view.scan(range, reverse: reverse) { key, value, writtenAt in
      cost.note(key.first)
      return try visit(key, value, writtenAt)
    }
  }

  func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws -> HiddenKeys {
    try view.scan(range, reverse: reverse, maximumHidden: limit) { key, value, writtenAt in
      cost.note(key.first)
      return try visit(key, value, writtenAt)
    }
  }
}
