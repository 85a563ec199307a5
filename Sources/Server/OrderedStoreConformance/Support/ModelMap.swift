// The naive model of a database, with which conformance checks compare a store.

internal import OrderedStore

/// A row in the form that checks compare.
struct ModelRow: Equatable, Sendable, CustomStringConvertible {
  var key: Key
  var value: StoredValue
  var writtenAt: Version

  var description: String { "\(key)=\(value)@\(writtenAt)" }
}

/// The naive model of a database, with which checks compare the store: a list of rows, sorted by the standard
/// library's comparison of bytes.
struct ModelMap: Sendable {
  private(set) var rows: [ModelRow] = []

  private func position(of key: Key) -> (index: Int, isFound: Bool) {
    let index = rows.firstIndex { !$0.key.lexicographicallyPrecedes(key) } ?? rows.count
    return (index, index < rows.count && rows[index].key == key)
  }

  func get(_ key: Key) -> ModelRow? {
    let position = position(of: key)
    return position.isFound ? rows[position.index] : nil
  }

  mutating func set(_ key: Key, _ value: StoredValue, at version: Version) {
    let position = position(of: key)
    let row = ModelRow(key: key, value: value, writtenAt: version)
    if position.isFound { rows[position.index] = row } else { rows.insert(row, at: position.index) }
  }

  mutating func clear(_ key: Key) {
    let position = position(of: key)
    if position.isFound { rows.remove(at: position.index) }
  }

  mutating func clear(_ range: KeyRange) { rows.removeAll { range.contains($0.key) } }

  func scan(_ range: KeyRange, reverse: Bool, limit: Int = .max) -> [ModelRow] {
    let rows = rows.filter { range.contains($0.key) }
    return Array((reverse ? rows.reversed() : rows).prefix(limit))
  }
}

extension ReadView {
  /// Copies of the rows of a range.
  func rows(_ range: KeyRange, reverse: Bool = false, limit: Int = .max) throws -> [ModelRow] {
    var rows: [ModelRow] = []
    guard limit > 0 else { return rows }
    try scan(range, reverse: reverse) { key, value, writtenAt in
      rows.append(ModelRow(key: Key(key), value: StoredValue(value), writtenAt: writtenAt))
      return rows.count < limit
    }
    return rows
  }

  /// The row of a key.
  func row(_ key: Key) throws -> ModelRow? {
    try get(key).map { ModelRow(key: key, value: $0.value, writtenAt: $0.writtenAt) }
  }

  /// The number stored under a key; zero if the key has no row.
  func number(_ key: Key) throws -> Int {
    guard let value = try get(key)?.value else { return 0 }
    return Int(String(decoding: value, as: UTF8.self)) ?? 0
  }
}

extension SequencedTransaction {
  /// Stores a number under a key.
  func set(_ key: Key, number: Int) throws { try set(key, Array(String(number).utf8)) }
}

extension KeyRange {
  /// Every key.
  static let all = KeyRange(start: [], end: nil)
}

/// One random write.
enum ModelWrite: Sendable {
  case set(Key, StoredValue)
  case clear(Key)
  case clearRange(KeyRange)

  static func random(_ random: inout SeededGenerator) -> ModelWrite {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: .clearRange(random.range())
    case 1...3: .clear(random.key())
    default: .set(random.key(), random.value())
    }
  }

  func apply(to state: any SequencedTransaction) throws {
    switch self {
    case .set(let key, let value): try state.set(key, value)
    case .clear(let key): try state.clear(key)
    case .clearRange(let range): try state.clear(range)
    }
  }

  func apply(to model: inout ModelMap, at version: Version) {
    switch self {
    case .set(let key, let value): model.set(key, value, at: version)
    case .clear(let key): model.clear(key)
    case .clearRange(let range): model.clear(range)
    }
  }
}
