// The store's sequenced state as a pass uses it: the same, and it remembers whether rows were cleared.
//
// Why that matters: after a body has ended the store still reads what its clears replace, and refuses the commit if it
// cannot. The next body is under way before anyone is told, so that it has to find out by itself: a pass that cleared
// rows leaves a mark, and the next one looks whether the mark is there (see `Sequencer`).

import OrderedStore

/// A sequenced state that is watched.
final class PassWriter: Sequenced {
  private let base: any Sequenced
  private var hasCleared = false

  init(_ base: any Sequenced) { self.base = base }

  var version: Version { base.version }
  var commitVersion: Version { base.commitVersion }

  func get(_ key: [UInt8]) throws -> VersionedValue? { try base.get(key) }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try base.scan(range, reverse: reverse, visit)
  }

  func set(_ key: [UInt8], _ value: StoredValue) throws { try base.set(key, value) }

  func insert(_ key: [UInt8], _ value: StoredValue) throws { try base.insert(key, value) }

  func clear(_ key: [UInt8]) throws {
    hasCleared = true
    try base.clear(key)
  }

  func clear(_ range: KeyRange) throws {
    hasCleared = true
    try base.clear(range)
  }

  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws { try base.log(payload, attachment) }

  /// Leaves the mark, if rows were cleared; whether it did.
  func mark() throws -> Bool {
    if hasCleared { try base.set(RowKeys.mark, []) }
    return hasCleared
  }
}
